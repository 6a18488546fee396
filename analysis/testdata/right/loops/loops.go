// Package loops has loops that end without an error.
package loops

import (
	"time"

	"github.com/perdure/perdure"
)

func until(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for true {
		err := perdure.Sleep(ctx, time.Hour)
		if err == nil && in == "" {
			continue
		}
		return in, err
	}
	return in, nil
}

func otherwise(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for {
		if err := perdure.Sleep(ctx, time.Hour); err != nil {
			continue
		} else {
			return in, nil
		}
	}
}

func succeeds(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for {
		if err := perdure.Sleep(ctx, time.Hour); err == nil {
			return in, nil
		}
	}
}

func switches(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for {
		switch err := perdure.Sleep(ctx, time.Hour); {
		case err != nil:
			return in, err
		case in == "":
			return in, nil
		}
	}
}
