// Package library lists the effects of functions of the standard library and of other libraries.
package library

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
)

// Known describes functions, methods and variables of libraries that have the same effect.
type Known struct {
	// names are values of types.Func.FullName without type arguments. * matches any text.
	names []string
	Rule  *rules.Rule
	// Instead replaces the rule's advice if it is not empty.
	Instead string
}

// table lists the functions with an effect. Exact names apply before patterns, and otherwise the first match applies.
var table = []Known{
	{[]string{"time.Now"}, rules.Clock, ""},
	{[]string{"time.Since"}, rules.Clock, "use ctx.Now().Sub(t)"},
	{[]string{"time.Until"}, rules.Clock, "use t.Sub(ctx.Now())"},
	{[]string{"time.Sleep"}, rules.Clock, "use perdure.Sleep(ctx, d)"},
	{
		[]string{"time.After", "time.NewTimer", "time.Tick", "time.NewTicker", "(*time.Timer).*", "(*time.Ticker).*"},
		rules.Clock, "use perdure.CreateTimer(ctx, d)",
	},
	{[]string{"time.AfterFunc"}, rules.Goroutine, "use perdure.Go with perdure.Sleep"},

	{
		[]string{
			"math/rand.New", "math/rand.NewSource", "math/rand.NewZipf", "math/rand/v2.New", "math/rand/v2.NewPCG",
			"math/rand/v2.NewChaCha8", "math/rand/v2.NewZipf",
		},
		nil, "",
	},
	{[]string{"math/rand.*", "math/rand/v2.*"}, rules.Random, "use ctx.Rand()"},
	{
		[]string{
			"crypto/rand.*", "hash/maphash.MakeSeed", "hash/maphash.Comparable", "hash/maphash.String",
			"hash/maphash.Bytes", "(*hash/maphash.Hash).Sum*", "(*hash/maphash.Hash).Seed",
		},
		rules.Random, "",
	},
	{
		[]string{
			"crypto/ed25519.GenerateKey", "crypto/ecdsa.GenerateKey", "crypto/rsa.GenerateKey",
			"crypto/rsa.GenerateMultiPrimeKey", "crypto/mlkem.GenerateKey*",
		},
		rules.Random, "do it in an activity",
	},
	{
		[]string{"github.com/google/uuid.NewSHA1", "github.com/google/uuid.NewMD5", "github.com/google/uuid.NewHash"},
		nil, "",
	},
	{
		[]string{
			"github.com/google/uuid.New*", "github.com/google/uuid.Must*New*", "github.com/gofrs/uuid.NewV*",
			"github.com/gofrs/uuid/v5.NewV*", "github.com/satori/go.uuid.NewV*",
		},
		rules.Random, "use ctx.NewUUID()",
	},
	{
		[]string{
			"github.com/oklog/ulid.Make", "github.com/oklog/ulid/v2.Make", "github.com/oklog/ulid/v2.DefaultEntropy",
			"github.com/segmentio/ksuid.New*", "github.com/rs/xid.New*", "github.com/lithammer/shortuuid*.New*",
			"github.com/matoous/go-nanoid*.New*",
		},
		rules.Random, "use ctx.NewUUID()",
	},
	{[]string{"github.com/oklog/ulid.Now", "github.com/oklog/ulid/v2.Now"}, rules.Clock, ""},

	{
		[]string{
			"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.Hostname", "os.Getpid", "os.Getppid",
			"os.Getuid", "os.Getgid", "os.Getwd", "os.Executable", "os.UserHomeDir", "os.TempDir", "os.Args",
		},
		rules.Environment, "",
	},
	{
		[]string{
			"syscall.Getenv", "syscall.Environ", "runtime.NumCPU", "runtime.NumGoroutine", "runtime.GOMAXPROCS",
			"runtime.ReadMemStats", "os/user.*", "time.LoadLocation", "mime.TypeByExtension", "mime.ExtensionsByType",
			"crypto/x509.SystemCertPool", "runtime/debug.ReadBuildInfo",
		},
		rules.Environment, "",
	},
	{[]string{"(time.Time).Local", "time.Local"}, rules.Environment, "use UTC"},

	{
		[]string{
			"(*sync.WaitGroup).Go", "(*golang.org/x/sync/errgroup.Group).Go",
			"(*golang.org/x/sync/errgroup.Group).TryGo", "runtime.Goexit", "runtime.Gosched", "context.AfterFunc",
		},
		rules.Goroutine, "",
	},
	{
		[]string{
			"(*sync.Once).*", "(*sync.Pool).*", "sync.OnceFunc", "sync.OnceValue", "sync.OnceValues", "sync.NewCond",
			"(*sync.Mutex).Unlock", "(*sync.RWMutex).Unlock", "(*sync.RWMutex).RUnlock",
		},
		nil, "",
	},
	{
		[]string{
			"(*sync.*", "(sync.*", "sync/atomic.*", "(*sync/atomic.*", "(*golang.org/x/sync/errgroup.Group).Wait",
			"(*golang.org/x/sync/semaphore.*", "(*golang.org/x/sync/singleflight.*",
		},
		rules.Sync, "",
	},

	{
		[]string{
			"context.WithValue", "context.Cause", "context.Background", "context.TODO", "context.With*",
			"(context.Context).*", "os/signal.NotifyContext",
		},
		rules.Context, "",
	},

	{
		[]string{
			"os.IsNotExist", "os.IsExist", "os.IsPermission", "os.IsTimeout", "os.IsPathSeparator", "os.Expand",
			"os.NewSyscallError", "os.Signal*", "os.Err*", "os.Interrupt", "os.Kill", "io/ioutil.ReadAll",
			"io/ioutil.NopCloser", "io/ioutil.Discard",
		},
		nil, "",
	},
	{
		[]string{
			"os.*", "(*os.File).*", "(*os.Process).*", "(*os.Root).*", "io/ioutil.*", "syscall.*",
			"path/filepath.Walk*", "path/filepath.Glob", "path/filepath.Abs", "path/filepath.EvalSymlinks",
			"os/signal.*",
		},
		rules.IO, "",
	},
	{[]string{"(*os/exec.Cmd).*", "os/exec.LookPath", "os/exec.Command*"}, rules.IO, ""},
	{
		[]string{"fmt.Print", "fmt.Printf", "fmt.Println", "fmt.Scan*"},
		rules.IO,
		"use ctx.Logger(), or do it in an activity",
	},
	{
		[]string{
			"net.Dial*", "net.Listen*", "net.Lookup*", "net.Resolve*", "net.Interface*", "(*net.Dialer).*",
			"(*net.Resolver).*", "(net.Conn).*", "(net.Listener).*", "(*net.TCPConn).*", "(*net.UDPConn).*",
			"crypto/tls.Dial*", "crypto/tls.Listen", "crypto/tls.LoadX509KeyPair", "(*crypto/tls.Dialer).*",
			"(*crypto/tls.Conn).*", "net/textproto.Dial", "net/rpc/jsonrpc.Dial", "net/smtp.SendMail", "net/smtp.Dial",
			"(*net/smtp.Client).*", "net/rpc.Dial*", "(*net/rpc.Client).*",
		},
		rules.IO, "",
	},
	{
		[]string{
			"net/http.Get", "net/http.Head", "net/http.Post", "net/http.PostForm", "net/http.ListenAndServe*",
			"net/http.Serve*", "(*net/http.Client).*", "(*net/http.Transport).*", "(net/http.RoundTripper).*",
			"(*net/http.Server).*",
		},
		rules.IO, "",
	},
	{
		[]string{
			"text/template.ParseFiles", "text/template.ParseGlob", "(*text/template.Template).ParseFiles",
			"(*text/template.Template).ParseGlob", "html/template.ParseFiles", "html/template.ParseGlob",
			"(*html/template.Template).ParseFiles", "(*html/template.Template).ParseGlob", "archive/zip.OpenReader",
			"plugin.Open", "log/syslog.*", "(*log/syslog.Writer).*",
		},
		rules.IO, "",
	},
	{
		[]string{
			"database/sql.Open*", "(*database/sql.DB).*", "(*database/sql.Tx).*", "(*database/sql.Conn).*",
			"(*database/sql.Stmt).*", "(*database/sql.Rows).*", "(*database/sql.Row).*",
		},
		rules.IO, "",
	},
	{
		[]string{
			"github.com/aws/aws-sdk-go-v2/config.Load*", "(*github.com/aws/aws-sdk-go-v2/service/*",
			"(*github.com/aws/aws-sdk-go-v2/feature/*", "(*github.com/aws/aws-sdk-go/service/*",
		},
		rules.IO, "",
	},
	{
		[]string{
			"github.com/jackc/pgx/v5.Connect*", "(*github.com/jackc/pgx/v5.Conn).*",
			"(*github.com/jackc/pgx/v5/pgxpool.Pool).*", "(*github.com/redis/go-redis/v9.*", "(*gorm.io/gorm.DB).*",
			"(*go.mongodb.org/mongo-driver/*", "(*github.com/go-resty/resty/v2.Request).*",
			"google.golang.org/grpc.NewClient", "(*google.golang.org/grpc.ClientConn).*",
		},
		rules.IO, "",
	},
	{
		[]string{
			api.Root + "/client.*", "(*" + api.Root + "/client.*",
			api.Root + "/provider/*", "(*" + api.Root + "/provider/*",
			api.Root + "/dispatch.*", api.Root + "/lambdahandler.*",
		},
		rules.IO, "use a function that takes the orchestration context, or do it in an activity",
	},

	{
		[]string{
			"log.Fatal*", "log.Panic*", "log.Print*", "log.Output", "log.Default", "(*log.Logger).*", "log/slog.Debug*",
			"log/slog.Info*", "log/slog.Warn*", "log/slog.Error*", "log/slog.Log*", "log/slog.Default",
		},
		rules.Log, "",
	},
	{
		[]string{
			"github.com/sirupsen/logrus.*", "(*github.com/sirupsen/logrus.*", "(*go.uber.org/zap.Logger).*",
			"(*go.uber.org/zap.SugaredLogger).*", "go.uber.org/zap.L", "go.uber.org/zap.S",
			"(*github.com/rs/zerolog.Logger).*", "github.com/rs/zerolog/log.*", "github.com/golang/glog.*",
			"k8s.io/klog*",
		},
		rules.Log, "",
	},

	// Values that are variables.
	{[]string{"net/http.DefaultClient", "net/http.DefaultTransport"}, rules.IO, ""},
}

// index has the entries by exact name.
var index = sync.OnceValue(func() map[string]*Known {
	exact := map[string]*Known{}
	for i := range table {
		for _, name := range table[i].names {
			if _, there := exact[name]; !there && !strings.HasSuffix(name, "*") {
				exact[name] = &table[i]
			}
		}
	}
	return exact
})

// LookUp returns the entry of a full name. The rule of an entry without an effect is nil.
func LookUp(name string) (k *Known, ok bool) {
	if k, ok := index()[name]; ok {
		return k, true
	}
	name = strings.ReplaceAll(name, receiver, escaped)
	for _, p := range patterns() {
		if p.matches(name) {
			return p.known, true
		}
	}
	return nil, false
}

// In patterns and the names that they match, pointer receivers have no *, which matches any text.
const receiver, escaped = "(*", "(&"

// pattern is a name of the table with *.
type pattern struct {
	// parts are the texts between the *. The last one is empty if the pattern ends with *.
	parts []string
	known *Known
}

// patterns returns the patterns in the order of the table.
var patterns = sync.OnceValue(func() (all []pattern) {
	for i := range table {
		for _, name := range table[i].names {
			if parts := strings.Split(strings.ReplaceAll(name, receiver, escaped), "*"); len(parts) > 1 {
				all = append(all, pattern{parts, &table[i]})
			}
		}
	}
	return all
})

func (p *pattern) matches(name string) bool {
	name, found := strings.CutPrefix(name, p.parts[0])
	if !found {
		return false
	}
	for _, part := range p.parts[1:] {
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name = name[at+len(part):]
	}
	return name == "" || p.parts[len(p.parts)-1] == ""
}
