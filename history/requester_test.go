package history_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/history"
)

func TestRequester_reservedOrInvalidName_isReplaced(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:sts::123456789012:assumed-role/Operators/alice"
	for name, want := range map[string]string{
		"": "", arn: arn, "client": "client", "body": "client", "engine": "client", "parent:": "client",
		"parent:order-7": "client", "a\nb\x00\u0085": "ab", "\xff\xfeü": "ü",
	} {
		if got := history.Requester(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := history.Requester(strings.Repeat("€", 5000)); len(got) > history.MaxRequesterBytes ||
		!utf8.ValidString(got) || history.Requester(got) != got {
		t.Errorf("long requester: got %d bytes", len(got))
	}
}
