package mcpserver

import (
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

const (
	// confirmationTime is the time in which a preview can be confirmed.
	confirmationTime = 5 * time.Minute
	// maxConfirmations is the number of previews that are kept. A new one replaces the oldest one.
	maxConfirmations = 1000
)

// Errors of a confirmation.
var (
	errConfirmationUnknown = errors.New("confirmation is not known or has expired; call the tool without it for a " +
		"new preview")
	errConfirmationUsed = errors.New("confirmation was used already, and the change may have been made; " +
		"check the status before a new preview")
	errConfirmationArgs = errors.New("confirmation belongs to a call with other arguments; " +
		"call the tool without it for a new preview")
	errConfirmationState = errors.New("the previewed state has changed, and nothing was done; " +
		"call the tool without confirmation for a new preview")
)

// confirmations has the previews that can be confirmed. It is safe for concurrent use.
type confirmations struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]*confirmation
	order []string // of known, the oldest first
}

// confirmation is a preview.
type confirmation struct {
	args    string // a hash of the tool and its arguments
	state   string // the state that the preview showed
	expires time.Time
	used    bool
}

func newConfirmations(now func() time.Time) *confirmations {
	return &confirmations{now: now, known: map[string]*confirmation{}}
}

// issue returns the confirmation of a preview, and when it expires.
func (c *confirmations) issue(args, state string) (value string, expires time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for len(c.order) > 0 && (len(c.order) >= maxConfirmations || !now.Before(c.known[c.order[0]].expires)) {
		delete(c.known, c.order[0])
		c.order = c.order[1:]
	}
	value, expires = rand.Text(), now.Add(confirmationTime)
	c.known[value] = &confirmation{args: args, state: state, expires: expires}
	c.order = append(c.order, value)
	return value, expires
}

// use uses up a confirmation and returns the state that its preview showed. A confirmation for other arguments stays
// valid.
func (c *confirmations) use(value, args string) (state string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch k := c.known[value]; {
	case k == nil, !c.now().Before(k.expires):
		return "", errConfirmationUnknown
	case k.args != args:
		return "", errConfirmationArgs
	case k.used:
		return "", errConfirmationUsed
	default:
		k.used = true
		return k.state, nil
	}
}
