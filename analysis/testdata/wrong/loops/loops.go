// Package loops has endless loops in several forms.
package loops

import (
	"time"

	"github.com/perdure/perdure"
)

func always(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for true { // want `always loops forever: .*\[endless\]`
		if err := perdure.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
	}
	return in, nil
}

func continues(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for { // want `continues loops forever: .*\[endless\]`
		err := perdure.Sleep(ctx, time.Hour)
		if err == nil {
			continue
		}
		return in, err
	}
}

func otherwise(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for { // want `otherwise loops forever: .*\[endless\]`
		if err := perdure.Sleep(ctx, time.Hour); err == nil {
			in += "."
		} else {
			return in, err
		}
	}
}

func switches(ctx *perdure.OrchestrationContext, in string) (string, error) {
	for { // want `switches loops forever: .*\[endless\]`
		switch err := perdure.Sleep(ctx, time.Hour); {
		case err != nil:
			return in, err
		case in == "":
			in = "."
		}
	}
}
