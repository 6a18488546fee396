package selftest

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
)

// Tag is the key of the tag of a run's resources. Its value is the ID of the run.
const Tag = "perdure:selftest"

// runID identifies a run. It is the start time in seconds, in base 36, and randomLength random characters.
type runID string

const (
	base         = 36
	randomLength = 4
)

var runIDs = regexp.MustCompile(`^[0-9a-z]{6,7}[a-z2-7]{4}$`)

func newRunID(now time.Time) runID {
	return runID(strconv.FormatInt(now.Unix(), base) + strings.ToLower(rand.Text()[:randomLength]))
}

// parseRunID returns an error if a text is not the ID of a run.
func parseRunID(text string) (runID, error) {
	if !runIDs.MatchString(text) {
		return "", fmt.Errorf("must be the ID of a run, such as t9k3ab4mxq, is %q", text)
	}
	return runID(text), nil
}

// startedAt returns the start time of the run.
func (r runID) startedAt() time.Time {
	seconds, _ := strconv.ParseInt(string(r[:len(r)-randomLength]), base, 64) // the ID is valid
	return time.Unix(seconds, 0).UTC()
}

const prefix = "perdure-selftest-"

// hub returns the name of the run's hub, at most 20 characters.
func (r runID) hub() string { return "selftest-" + string(r) }

// stack returns the name of the run's stack, which perdure deploy would choose for the hub.
func (r runID) stack() string { return prefix + string(r) }

// bucketPrefix returns the prefix of the buckets of all runs in an account and region.
func bucketPrefix(account, region string) string { return prefix + account + "-" + region + "-" }

// runOfStack returns the run that created a stack. The stack of a change set that was not executed has no tags, and no
// resources either.
func runOfStack(s *deployment.Stack) (runID, bool) {
	text, tagged := s.Tags[Tag]
	if !tagged && s.Status == "REVIEW_IN_PROGRESS" {
		text = strings.TrimPrefix(s.Name, prefix)
	}
	r, err := parseRunID(text)
	return r, err == nil && s.Name == r.stack()
}
