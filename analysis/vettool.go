package analysis

import (
	"path/filepath"

	"golang.org/x/tools/go/analysis/unitchecker"
)

// IsVetCall reports whether go vet -vettool started the program with these arguments. args does not include the
// program's name.
func IsVetCall(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return len(args) == 1 && (last == "-V=full" || last == "-flags") || filepath.Base(last) == "vet.cfg"
}

// RunVetTool checks one package for go vet -vettool and exits the program.
func RunVetTool() { unitchecker.Main(Analyzer) }
