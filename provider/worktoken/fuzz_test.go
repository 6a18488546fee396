package worktoken_test

import (
	"encoding/base64"
	"errors"
	"reflect"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/worktoken"
)

// FuzzVerify checks that a signer accepts only the tokens that it returns, byte for byte, and rejects all others with
// ErrInvalidToken or a *ForeignTokenError.
func FuzzVerify(f *testing.F) {
	first, second := key("1", "a"), key("2", "b")
	tokens := worktoken.NewSigner("orders", first, second)
	w := signed()
	w.InstanceID = "order-7"
	for _, hub := range []*worktoken.Signer{
		tokens, worktoken.NewSigner("orders", first), worktoken.NewSigner("other", second),
	} {
		f.Add(hub.Sign(&w))
		f.Add(hub.SignCompletion(&w))
	}
	f.Add("w1.1." + base64.RawURLEncoding.EncodeToString([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01 and a MAC")))
	f.Add("")
	byKey := map[string]*worktoken.Signer{
		"1": worktoken.NewSigner("orders", first), "2": worktoken.NewSigner("orders", second),
	}
	f.Fuzz(func(t *testing.T, token string) {
		got, err := tokens.Verify(token)
		if !errors.Is(err, provider.ErrInvalidToken) && (err != nil || byKey[token[3:4]].Sign(&got) != token) {
			t.Errorf("work item token %q: %+v, %v", token, got, err)
		}
		got, err = tokens.VerifyCompletion(token)
		_, foreign := errors.AsType[*provider.ForeignTokenError](err)
		if !foreign && !errors.Is(err, provider.ErrInvalidToken) &&
			(err != nil || byKey[token[3:4]].SignCompletion(&got) != token) {
			t.Errorf("completion token %q: %+v, %v", token, got, err)
		}
		if err != nil && !reflect.DeepEqual(got, provider.WorkItem{}) && !foreign {
			t.Errorf("%q was rejected but returns %+v", token, got)
		}
	})
}
