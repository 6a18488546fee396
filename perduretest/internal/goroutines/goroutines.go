// Package goroutines reads dumps of goroutines. Go does not guarantee their format.
package goroutines

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/replay/stack"
)

// Goroutine is a goroutine in a dump of the runtime.
type Goroutine struct {
	ID, State string
	// Bubble is the name of the goroutine's bubble, or empty.
	Bubble string
	// Durable is true if the goroutine is durably blocked in its bubble (see testing/synctest).
	Durable bool
	Stack   string
}

// header matches the first line of a stack: "goroutine 7 [sync.Mutex.Lock, 2 minutes, synctest bubble 3]:".
var header = regexp.MustCompile(`^goroutine (\d+)[^\[]*\[([^\],]*)([^\]]*)\]:`)

func parse(text string) Goroutine {
	m := header.FindStringSubmatch(text)
	if m == nil {
		return Goroutine{}
	}
	g := Goroutine{ID: m[1], Stack: text}
	g.State, g.Durable = strings.CutSuffix(m[2], " (durable)")
	if _, bubble, ok := strings.Cut(m[3], "synctest bubble "); ok {
		g.Bubble, _, _ = strings.Cut(bubble, ",")
	}
	return g
}

// headerBytes is the size of a buffer for the first line of a stack.
const headerBytes = 128

// Current returns the calling goroutine without its stack.
func Current() Goroutine {
	var b [headerBytes]byte
	return parse(string(b[:runtime.Stack(b[:], false)]))
}

// All returns all goroutines of the process.
func All() []Goroutine {
	b := make([]byte, 1<<20)
	for n := runtime.Stack(b, true); ; n = runtime.Stack(b, true) {
		if n < len(b) {
			b = b[:n]
			break
		}
		b = make([]byte, 2*len(b))
	}
	var found []Goroutine
	for one := range strings.SplitSeq(string(b), "\n\n") {
		found = append(found, parse(one))
	}
	return found
}

// Awake returns the goroutines that stop virtual time.
func Awake(all []Goroutine) (awake []Goroutine) {
	for _, g := range all {
		if !g.Durable {
			awake = append(awake, g)
		}
	}
	return awake
}

// blocking are the states of goroutines that wait for another goroutine.
var blocking = []string{
	"sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock", "sync.Cond.Wait", "sync.WaitGroup.Wait",
	"chan receive", "chan send", "select", "semacquire",
}

// Fingerprint returns a text with the states of goroutines. It is empty unless all goroutines wait for other
// goroutines.
func Fingerprint(awake []Goroutine) string {
	var b strings.Builder
	for _, g := range awake {
		if !slices.ContainsFunc(blocking, func(s string) bool { return strings.HasPrefix(g.State, s) }) {
			return ""
		}
		fmt.Fprintf(&b, "%s %s;", g.ID, g.State)
	}
	return b.String()
}

// doing describes the state of a goroutine.
func doing(state string) string {
	switch {
	case state == "running", state == "runnable":
		return "computes"
	case strings.HasPrefix(state, "sync.Mutex"), strings.HasPrefix(state, "sync.RWMutex"):
		return "waits for a mutex"
	case strings.HasPrefix(state, "chan receive"):
		return "waits to receive from a channel"
	case strings.HasPrefix(state, "chan send"):
		return "waits to send on a channel"
	case state == "IO wait":
		return "waits for the network or a file"
	default:
		return "waits (" + state + ")"
	}
}

// Describe returns a description of the goroutine's state and position.
func (g Goroutine) Describe() string {
	return fmt.Sprintf("%s %s, in %s", g.Owner(), doing(g.State), cmp.Or(g.Where(),
		"code of perdure or Go:\n"+g.Stack))
}

// IsOrchestration reports whether a goroutine runs the code of an orchestration.
func (g Goroutine) IsOrchestration() bool {
	return strings.Contains(g.Stack, "usercode.Orchestration[")
}

// Where returns the user code that a goroutine runs, or an empty string.
func (g Goroutine) Where() string { return stack.Where(g.Stack) }

// Owner returns a description of the code that the goroutine runs, such as "an activity".
func (g Goroutine) Owner() string {
	switch {
	case g.IsOrchestration():
		return "an orchestration"
	case strings.Contains(g.Stack, "usercode.Activity["):
		return "an activity"
	default:
		return "a goroutine"
	}
}

// DescribeAll describes goroutines, one per line.
func DescribeAll(gs []Goroutine) string {
	var b strings.Builder
	for _, g := range gs {
		b.WriteString("\n  " + g.Describe())
	}
	return b.String()
}

// UsesNetwork reports whether a goroutine waits for the network.
func (g Goroutine) UsesNetwork() bool {
	return g.State == "IO wait" || strings.Contains(g.Stack, "net/http.")
}
