package cli

import (
	"encoding/base64"
	"strings"
	"testing"
)

// FuzzSubject checks that a token is rejected with an error that does not contain it, or has the subject of its claims.
func FuzzSubject(f *testing.F) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"me","exp":1}`))
	for _, token := range []string{"h." + claims + ".s", "h.e30.s", "h.e30=.s", "h.bnVsbA.s", "a.b", "", "...."} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		subject, err := Subject(token)
		if err != nil && (subject != "" || len(token) > 8 && strings.Contains(err.Error(), token)) {
			t.Errorf("subject %q, error %v", subject, err)
		}
		if err == nil && strings.Count(token, ".") != 2 {
			t.Errorf("%q has the subject %q", token, subject)
		}
	})
}
