package verification

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// Allowance is the maximum of unreadable instances: a number, or a percentage of the replayed instances.
type Allowance struct {
	number int
	share  float64
}

// ParseAllowance parses a number or a percentage, such as 1%.
func ParseAllowance(text string) (a Allowance, err error) {
	share, isShare := strings.CutSuffix(text, "%")
	if isShare {
		a.share, err = strconv.ParseFloat(share, 64)
	} else {
		a.number, err = strconv.Atoi(text)
	}
	if err != nil || a.number < 0 || !(a.share >= 0 && a.share <= 100) { // also rejects NaN
		return a, fmt.Errorf("must be a number or a percentage of instances, such as 1%%, is %q", text)
	}
	return a, nil
}

// allows reports whether the number of unreadable instances is within the allowance. It returns false if all replayed
// instances are unreadable, because the result would not verify the code.
func (a Allowance) allows(unread, replayed int) bool {
	switch unread {
	case 0:
		return true
	case replayed:
		return false
	default:
		return unread <= a.number || float64(unread)*100 <= a.share*float64(replayed)
	}
}

// unread returns the number of instances that could not be replayed.
func (v *Result) unread() (n int) {
	for i := range v.Orchestrations {
		n += v.Orchestrations[i].Unread
	}
	return n
}

// unreadText returns the number of instances that could not be replayed, some IDs, and the reason for the first one.
func (v *Result) unreadText() string {
	var ids []string
	why := ""
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Outcome == OutcomeUnread {
			ids = append(ids, f.InstanceID)
			why = cmp.Or(why, term.Excerpt(f.Problem, 4*term.MaxDetail))
		}
	}
	return fmt.Sprintf("%d of %d instances could not be replayed: %s (%s); use --allow-unread to tolerate some",
		v.unread(), v.Replayed, term.SomeOf(ids, v.unread()), why)
}
