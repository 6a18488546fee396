package library

import (
	"testing"

	"github.com/perdure/perdure/analysis/internal/rules"
)

func TestLookUp_functionName_returnsItsRule(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]*rules.Rule{
		"time.Now":                              rules.Clock,
		"time.Unix":                             nil,
		"(*time.Timer).Stop":                    rules.Clock,
		"(time.Time).Local":                     rules.Environment,
		"(time.Time).Add":                       nil,
		"math/rand/v2.IntN":                     rules.Random,
		"math/rand/v2.NewPCG":                   nil,
		"(*math/rand/v2.Rand).IntN":             nil,
		"github.com/google/uuid.NewString":      rules.Random,
		"github.com/google/uuid.New":            rules.Random,
		"github.com/google/uuid.NewSHA1":        nil,
		"github.com/google/uuid.Parse":          nil,
		"github.com/lithammer/shortuuid/v4.New": rules.Random,
		"os.ErrNotExist":                        nil,
		"os.Open":                               rules.IO,
		"(*sync.Mutex).Lock":                    rules.Sync,
		"(*sync.Mutex).Unlock":                  nil,
		"(*sync.Once).Do":                       nil,
		"sync/atomic.AddInt64":                  rules.Sync,
		"net/http.StatusText":                   nil,
		"(*hash/maphash.Hash).Sum64":            rules.Random,
		"(*hash/maphash.Hash).SetSeed":          nil,
		"crypto/tls.LoadX509KeyPair":            rules.IO,
		"html/template.ParseFiles":              rules.IO,
		"(*text/template.Template).ParseGlob":   rules.IO,
		"(*text/template.Template).Parse":       nil,
		"(*text/template.Template).Execute":     nil,
		"io/ioutil.ReadAll":                     nil,
		"io/ioutil.ReadFile":                    rules.IO,
		"(*net/http.Client).Do":                 rules.IO,
		"log/slog.Info":                         rules.Log,
		"(*log/slog.Logger).Info":               nil,
		"(context.Context).Done":                rules.Context,
		"(*github.com/aws/aws-sdk-go-v2/service/s3.Client).GetObject": rules.IO,
		"github.com/perdure/perdure/client.New":                       rules.IO,
	} {
		var got *rules.Rule
		if k, ok := LookUp(name); ok {
			got = k.Rule
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
