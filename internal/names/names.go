// Package names checks the names, IDs, keys and durations that user code passes to package perdure.
package names

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/failures"
)

// maxBytes limits the names of events, updates, queries, operations and changes, the IDs of updates, and keys. The
// history stores them with each use.
const maxBytes = 256

// Must panics if the name of a kind is empty or not valid UTF-8, which JSON in the history would change.
func Must(kind, name string) {
	if name == "" {
		panic("perdure: " + kind + ": name is empty")
	}
	if !utf8.ValidString(name) {
		panic(fmt.Sprintf("perdure: %s: name %q is not valid UTF-8", kind, name))
	}
}

// MustDefine panics if a function cannot be registered under a name: the name is invalid, as in Must, or the function
// is nil.
func MustDefine(kind, name string, hasFunction bool) {
	Must(kind, name)
	if !hasFunction {
		panic(fmt.Sprintf("perdure: %s %q: function is nil", kind, name))
	}
}

// MustOperation panics if an operation of an entity cannot have the name, or has no function.
func MustOperation(name string, hasFunction bool) {
	Must("operation", name)
	if err := CheckText("name", name); err != nil {
		panic("perdure: operation: " + err.Error())
	}
	if !hasFunction {
		panic(fmt.Sprintf("perdure: operation %q: function is nil", name))
	}
}

// MustQueue panics if a work queue cannot have the name that an option sets.
func MustQueue(option, name string) {
	Must(option, name)
	if _, exclusive := history.BaseQueue(name); exclusive {
		panic(fmt.Sprintf("perdure: %s: name %q has a suffix reserved for perdure.Exclusive; remove it", option, name))
	}
}

// MustKey panics if a key that an option sets is not valid UTF-8 or has fewer than least or more than 256 bytes.
func MustKey(option, key string, least int) {
	if len(key) >= least && len(key) <= maxBytes && utf8.ValidString(key) {
		return
	}
	size := fmt.Sprintf("at most %d", maxBytes)
	if least > 0 {
		size = fmt.Sprintf("%d to %d", least, maxBytes)
	}
	panic(fmt.Sprintf("perdure: %s: key %.64q has %d bytes; use %s bytes of UTF-8", option, key, len(key), size))
}

// Check returns an error if name is not 1 to 256 bytes of UTF-8. what describes the name in the error.
func Check(what, name string) error {
	if name == "" || len(name) > maxBytes || !utf8.ValidString(name) {
		return fmt.Errorf("invalid %s %q; use 1 to %d bytes of UTF-8", what, failures.Truncate(name), maxBytes)
	}
	return nil
}

// CheckHandler returns an error if a call cannot set a handler of that name: the name is invalid, as in Check, or the
// handler is nil.
func CheckHandler(call, name string, hasHandler bool) error {
	if err := Check("name", name); err != nil {
		return fmt.Errorf("perdure: %s: %w", call, err)
	}
	if !hasHandler {
		return fmt.Errorf("perdure: %s %q: handler is nil", call, name)
	}
	return nil
}

// CheckText returns an error if a text is not 1 to 256 bytes of UTF-8 without control characters, like the texts of
// clients. what describes the text in the error.
func CheckText(what, s string) error {
	if s == "" || len(s) > maxBytes || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%s has %d bytes; use 1 to %d bytes of UTF-8 without control characters",
			what, len(s), maxBytes)
	}
	return nil
}

// CheckReceiver returns an error if a call cannot send an event or an update of that name to an instance.
func CheckReceiver(call, instanceID, name string) error {
	err := CheckInstanceID(instanceID)
	if err == nil {
		err = CheckText("name", name)
	}
	if err != nil {
		return fmt.Errorf("perdure: %s %q: %w", call, failures.Truncate(name), err)
	}
	return nil
}

// CheckInstanceID returns an error if an instance cannot have the ID.
func CheckInstanceID(id string) error { return checkInstanceID(id, history.MaxInstanceIDBytes, "") }

// checkRetriedInstanceID returns an error if the attempts of an orchestration with a retry policy cannot have IDs that
// begin with id. Each attempt is an instance.
func checkRetriedInstanceID(id string) error {
	return checkInstanceID(id, history.MaxInstanceIDBytes-history.RetrySuffixBytes,
		fmt.Sprintf(" (WithRetry reserves %d bytes for the attempt number)", history.RetrySuffixBytes))
}

// CheckNewInstance returns an error if an option sets an ID that the new instance of an orchestration cannot have.
// retried is true if the orchestration has a retry policy.
func CheckNewInstance(option, orchestration, id string, retried bool) error {
	check := CheckInstanceID
	if retried {
		check = checkRetriedInstanceID
	}
	if err := check(id); err != nil {
		return fmt.Errorf("perdure: %s: orchestration %q: %w", option, orchestration, err)
	}
	return nil
}

// CheckUpdateID returns an error if an update that a call sends cannot have the ID.
func CheckUpdateID(call, update, id string) error {
	if err := CheckText("update ID", id); err != nil {
		return fmt.Errorf("perdure: %s %q: %w", call, update, err)
	}
	return nil
}

// checkInstanceID checks an instance ID of at most longest bytes. why explains a limit that is lower than usual.
func checkInstanceID(id string, longest int, why string) error {
	switch at := strings.IndexFunc(id, unicode.IsControl); {
	case id == "":
		return errors.New("instance ID is empty")
	case len(id) > longest:
		return fmt.Errorf("instance ID has %d bytes; use 1 to %d bytes%s", len(id), longest, why)
	case !utf8.ValidString(id):
		return fmt.Errorf("instance ID %q is not valid UTF-8", id)
	case at >= 0:
		return fmt.Errorf("instance ID %q has a control character at byte %d", id, at)
	default:
		return nil
	}
}
