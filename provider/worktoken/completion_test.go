package worktoken_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/worktoken"
)

// A completion token is invalid if any of its bits is changed, and cannot be made from the token of a work item.
func TestSigner_forgedCompletionTokens_areInvalid(t *testing.T) {
	t.Parallel()
	tokens := worktoken.NewSigner("orders", key("1", "a"))
	w := signed()
	w.InstanceID = strings.Repeat("ü", provider.MaxInstanceIDBytes/2)
	good := tokens.SignCompletion(&w)
	if got, err := tokens.VerifyCompletion(good); err != nil || got.InstanceID != w.InstanceID ||
		got.Attempt != w.Attempt || got.Hub != "orders" {
		t.Fatalf("%+v, %v", got, err)
	}
	text := good[len("c1.1."):]
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if got, err := tokens.VerifyCompletion("c1.1." + base64.RawURLEncoding.EncodeToString(b)); !errors.Is(err,
				provider.ErrInvalidToken) || got.ExecutionID != "" {
				t.Errorf("bit %d of byte %d changed: %+v, %v", bit, i, got, err)
			}
			b[i] ^= 1 << bit
		}
	}

	ofWork := tokens.Sign(&w)
	for name, token := range map[string]string{
		"the token of the work item":       ofWork,
		"the same with another kind":       "c1" + ofWork[2:],
		"another key":                      "c1.2." + text,
		"an unknown key":                   worktoken.NewSigner("orders", key("2", "a")).SignCompletion(&w),
		"another secret":                   worktoken.NewSigner("orders", key("1", "b")).SignCompletion(&w),
		"another hub with the same secret": worktoken.NewSigner("order", key("1", "a")).SignCompletion(&w),
		"a line break":                     good[:20] + "\n" + good[20:],
		"half of the token":                good[:len(good)/2],
	} {
		if got, err := tokens.VerifyCompletion(token); !errors.Is(err, provider.ErrInvalidToken) ||
			got.ExecutionID != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := tokens.Verify(good); !errors.Is(err, provider.ErrInvalidToken) {
		t.Errorf("a completion token as a work item token: %v", err)
	}
}
