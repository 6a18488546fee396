package stack

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// framesShown is the number of frames of user code in a diagnosis.
const framesShown = 3

// Where returns the functions and lines of user code in a stack, innermost first: "shop.ShipOrder (shop/ship.go:44),
// …". It is empty if the stack contains no user code.
func Where(stack string) string {
	var shown []string
	for _, f := range framesOf(stack) {
		if len(shown) == framesShown {
			break
		}
		if !f.isUser() {
			continue
		}
		if s := f.String(); !slices.Contains(shown, s) {
			shown = append(shown, s)
		}
	}
	return strings.Join(shown, ", ")
}

// frame is a function and a position in it.
type frame struct{ function, place string }

// String returns the function without its package path, and the last two parts of the file path.
func (f frame) String() string {
	dir, file := filepath.Split(f.place)
	return f.function[strings.LastIndexByte(f.function, '/')+1:] + " (" + filepath.Base(dir) + "/" + file + ")"
}

// The runtime prints a frame in two forms: profiles use one line, with tabs that align the columns, and debug.Stack
// uses two lines.
var (
	profileFrame  = regexp.MustCompile(`^#\t+0x[0-9a-f]+\t+(\S+)\+0x[0-9a-f]+\t+(\S.*:\d+)$`)
	stackPosition = regexp.MustCompile(`^\t(\S.*:\d+)(?: \+0x[0-9a-f]+)?$`)
)

func framesOf(stack string) []frame {
	var all []frame
	before := ""
	for line := range strings.Lines(stack) {
		line = strings.TrimRight(line, "\n")
		if m := profileFrame.FindStringSubmatch(line); m != nil {
			all = append(all, frame{m[1], m[2]})
		} else if m := stackPosition.FindStringSubmatch(line); m != nil && !strings.HasPrefix(before, "created by ") {
			function := before
			if i := strings.LastIndexByte(function, '('); i > 0 {
				function = function[:i]
			}
			all = append(all, frame{function, m[1]})
		}
		before = line
	}
	return all
}

// module is the import path of this module. It is the engine, except for its tests and the packages in userLike.
const module = "github.com/perdure/perdure"

// userLike are the folders of this module whose code counts as user code.
var userLike = []string{"analysis/testdata/", "bench", "docs/", "examples/", "functions/", "tests/"}

// beneath are the modules that the engine calls. If user code calls them, the frames of the user code are more useful.
var beneath = []string{"github.com/aws/", "github.com/klauspost/compress/"}

// standard are the first elements of the import paths of the standard library.
var standard = strings.Fields("archive bufio bytes cmp compress container context crypto database debug embed " +
	"encoding errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin " +
	"reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode unique unsafe " +
	"vendor weak")

// isUser reports whether a frame belongs to user code.
func (f frame) isUser() bool {
	first := f.function
	if i := strings.IndexAny(first, "/."); i >= 0 {
		first = first[:i]
	}
	if slices.Contains(standard, first) || startsWithAny(f.function, beneath) {
		return false
	}
	inside, ours := strings.CutPrefix(f.function, module)
	if !ours || !strings.HasPrefix(inside, ".") && !strings.HasPrefix(inside, "/") {
		return true // another module, whose name may start with the name of this one
	}
	return strings.Contains(f.place, "_test.go:") || startsWithAny(inside[1:], userLike) && inside[0] == '/'
}

func startsWithAny(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
