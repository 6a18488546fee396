package analysis

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the rules of docs/reference/linter.md")

const (
	page  = "../docs/reference/linter.md"
	begin = "<!-- Rules: written by go test ./analysis -run TestDocs -update -->\n"
	end   = "<!-- End of the rules -->\n"
)

// docs/reference/linter.md describes the rules that there are, as they describe themselves.
func TestDocsDescribeEveryRule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the rules", page)
	}
	want := describe()
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("%s does not describe the rules: go test ./analysis -run TestDocs -update", page)
	}
}

func describe() string {
	var b strings.Builder
	for _, r := range rules() {
		fmt.Fprintf(&b, "\n### `%s`\n\n", r.id)
		if r.warning {
			b.WriteString("*Warning.* ")
		}
		fmt.Fprintf(&b, "%s\n\n%s.\n\n**Misses:** %s\n", r.finds, strings.ToUpper(r.instead[:1])+r.instead[1:],
			r.misses)
	}
	b.WriteString("\n")
	return b.String()
}

// Each rule has its programs in the corpus, and says what it misses.
func TestEveryRuleIsInTheCorpus(t *testing.T) {
	t.Parallel()
	var corpus strings.Builder
	if err := readAll(&corpus, "testdata/wrong"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range rules() {
		if seen[r.id] || r.finds == "" || r.why == "" || r.instead == "" || r.misses == "" {
			t.Errorf("rule %q is there twice, or says too little", r.id)
		}
		seen[r.id] = true
		if !strings.Contains(corpus.String(), `\[`+r.id+`\]`) {
			t.Errorf("no program of the corpus is found by rule %q", r.id)
		}
	}
}

func readAll(b *strings.Builder, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := dir + "/" + e.Name()
		if e.IsDir() {
			if err := readAll(b, path); err != nil {
				return err
			}
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	return nil
}

// Entries of the table mean what they look like.
func TestKnownNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]*rule{
		"time.Now":                              clock,
		"time.Unix":                             nil,
		"(*time.Timer).Stop":                    clock,
		"(time.Time).Local":                     environment,
		"(time.Time).Add":                       nil,
		"math/rand/v2.IntN":                     random,
		"math/rand/v2.NewPCG":                   nil,
		"(*math/rand/v2.Rand).IntN":             nil,
		"github.com/google/uuid.NewString":      random,
		"github.com/google/uuid.New":            random,
		"github.com/google/uuid.NewSHA1":        nil,
		"github.com/google/uuid.Parse":          nil,
		"github.com/lithammer/shortuuid/v4.New": random,
		"os.ErrNotExist":                        nil,
		"os.Open":                               inputOutput,
		"(*sync.Mutex).Lock":                    syncing,
		"(*sync.Mutex).Unlock":                  nil,
		"(*sync.Once).Do":                       nil,
		"sync/atomic.AddInt64":                  syncing,
		"net/http.StatusText":                   nil,
		"(*hash/maphash.Hash).Sum64":            random,
		"(*hash/maphash.Hash).SetSeed":          nil,
		"crypto/tls.LoadX509KeyPair":            inputOutput,
		"html/template.ParseFiles":              inputOutput,
		"(*text/template.Template).ParseGlob":   inputOutput,
		"(*text/template.Template).Parse":       nil,
		"(*text/template.Template).Execute":     nil,
		"io/ioutil.ReadAll":                     nil,
		"io/ioutil.ReadFile":                    inputOutput,
		"(*net/http.Client).Do":                 inputOutput,
		"log/slog.Info":                         logging,
		"(*log/slog.Logger).Info":               nil,
		"(context.Context).Done":                contexts,
		"(*github.com/aws/aws-sdk-go-v2/service/s3.Client).GetObject": inputOutput,
		"github.com/perdure/perdure/client.New":                       inputOutput,
	} {
		var got *rule
		if k, ok := lookUp(name); ok {
			got = k.rule
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
