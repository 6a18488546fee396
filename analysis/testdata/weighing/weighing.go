// Package weighing registers an activity that another package calls.
package weighing

import (
	"context"

	"github.com/perdure/perdure"
)

func weigh(_ context.Context, parcel string) (string, error) { return parcel, nil }

// Register adds the package's activities.
func Register(r *perdure.Registry) { perdure.AddActivity(r, "weigh-parcel", weigh) }
