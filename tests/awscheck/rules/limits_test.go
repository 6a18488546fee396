package rules_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"
)

// shared has the limits that are also in package simaws, with their names there. The packages do not import each other,
// because each finds errors of the other.
var shared = map[string]string{
	"mostItemBytes":         "maxItemSize",
	"mostTransactionBytes":  "maxTransactionSize",
	"mostPartitionKeyBytes": "maxPartitionKey",
	"mostSortKeyBytes":      "maxSortKey",
	"containerBytes":        "containerSize",
	"memberBytes":           "memberSize",
	"mostDigits":            "maxDigits",
	"mostMessageBytes":      "maxMessageSize",
	"mostDelaySeconds":      "maxDelay",
	"mostVisibility":        "maxVisibility",
	"mostWaitSeconds":       "maxWait",
	"mostBatchEntries":      "maxBatch",
	"mostReceiveMessages":   "maxBatch",
	"mostEntryID":           "maxBatchEntryID",
	"mostMessageID":         "maxIdentifier",
	"mostScheduleInput":     "maxScheduleInput",
	"mostPayload":           "maxPayload",
	"mostObjectKey":         "maxKeyBytes",
	"mostDeletedObjects":    "mostKeys",
}

func TestLimits_sharedWithSimulation_areEqual(t *testing.T) {
	ours, theirs := constants(t, "."), constants(t, filepath.Join("..", "..", "..", "internal", "simaws"))
	for name, other := range shared {
		if ours[name] == "" || ours[name] != theirs[other] {
			t.Errorf("%s is %q, %s of simaws is %q", name, ours[name], other, theirs[other])
		}
	}
}

// constants returns the numeric constants of a package that are written without other names.
func constants(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	all, set := map[string]string{}, token.NewFileSet()
	for _, name := range files {
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, value := range spec.Values {
				number, err := types.Eval(set, nil, token.NoPos, types.ExprString(value))
				if err == nil && number.Value != nil && number.Value.Kind() == constant.Int {
					all[spec.Names[i].Name] = number.Value.ExactString()
				}
			}
			return false
		})
	}
	return all
}
