package replay

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// framesShown is how many frames of user code a diagnosis has.
const framesShown = 3

// Where returns the functions and lines of user code in a stack, innermost first: "shop.ShipOrder (shop/ship.go:44),
// …". It is empty if the stack contains no user code.
func Where(stack string) string {
	var shown []string
	for _, f := range framesOf(stack) {
		if len(shown) == framesShown {
			break
		}
		if !f.isOwn() {
			continue
		}
		if s := f.String(); !slices.Contains(shown, s) {
			shown = append(shown, s)
		}
	}
	return strings.Join(shown, ", ")
}

type frame struct{ function, place string }

// String returns the function without its package path, and the last two parts of the file path.
func (f frame) String() string {
	dir, file := filepath.Split(f.place)
	return f.function[strings.LastIndexByte(f.function, '/')+1:] + " (" + filepath.Base(dir) + "/" + file + ")"
}

// The two forms in which the runtime prints a frame: that of profiles, in a line, and that of debug.Stack, in two. A profile has columns: the shorter a
// function's name is, the more tabs stand behind it.
var (
	profileFrame = regexp.MustCompile(`^#\t+0x[0-9a-f]+\t+(\S+)\+0x[0-9a-f]+\t+(\S.*:\d+)$`)
	stackPlace   = regexp.MustCompile(`^\t(\S.*:\d+)(?: \+0x[0-9a-f]+)?$`)
)

func framesOf(stack string) []frame {
	var all []frame
	before := ""
	for line := range strings.Lines(stack) {
		line = strings.TrimRight(line, "\n")
		if m := profileFrame.FindStringSubmatch(line); m != nil {
			all = append(all, frame{m[1], m[2]})
		} else if m := stackPlace.FindStringSubmatch(line); m != nil && !strings.HasPrefix(before, "created by ") {
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

// module is the import path of this module. All of it is the engine, which runs user code, but for tests and for what is written as a user writes.
const module = "github.com/perdure/perdure"

var written = []string{"analysis/testdata/", "bench", "docs/", "examples/", "functions/", "tests/"}

// beneath are the modules that the engine calls. Where a user's code calls them, its own frames tell more.
var beneath = []string{"github.com/aws/", "github.com/klauspost/compress/"}

// standard are the first parts of the import paths of Go's own packages.
var standard = strings.Fields("archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html image " +
	"index internal io iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv strings structs sync syscall testing text time unicode " +
	"unique unsafe vendor weak")

// isOwn reports whether a frame is of user code.
func (f frame) isOwn() bool {
	first := f.function
	if i := strings.IndexAny(first, "/."); i >= 0 {
		first = first[:i]
	}
	if slices.Contains(standard, first) || startsWithAny(f.function, beneath) {
		return false
	}
	inside, ours := strings.CutPrefix(f.function, module)
	if !ours || !strings.HasPrefix(inside, ".") && !strings.HasPrefix(inside, "/") {
		return true // of another module, whose name may begin with ours
	}
	return strings.Contains(f.place, "_test.go:") || startsWithAny(inside[1:], written) && inside[0] == '/'
}

func startsWithAny(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
