package analysis

import (
	"path/filepath"

	"golang.org/x/tools/go/analysis/unitchecker"
)

// IsVetCall reports whether a program was called by "go vet -vettool", by its arguments without its name.
func IsVetCall(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return len(args) == 1 && (last == "-V=full" || last == "-flags") || filepath.Base(last) == "vet.cfg"
}

// VetTool answers a call by "go vet -vettool" for one package, and ends the program.
func VetTool() { unitchecker.Main(Analyzer) }
