package analysis

import (
	"go/types"
	"strings"
	"sync"
)

// known is a function, method or variable of the standard library, or of a library that is widely used, with its
// effect.
type known struct {
	// names are types.Func.FullName, without type arguments. One that ends with * stands for all that begin so.
	names []string
	rule  *rule
	// instead replaces the rule's advice.
	instead string
}

// table is all that is known of code that is not looked at. What is not listed has no effect.
var table = []known{
	{[]string{"time.Now"}, clock, ""},
	{[]string{"time.Since"}, clock, "use ctx.Now().Sub(t)"},
	{[]string{"time.Until"}, clock, "use t.Sub(ctx.Now())"},
	{[]string{"time.Sleep"}, clock, "use perdure.Sleep(ctx, d)"},
	{
		[]string{"time.After", "time.NewTimer", "time.Tick", "time.NewTicker", "(*time.Timer).*", "(*time.Ticker).*"},
		clock, "use perdure.CreateTimer(ctx, d)",
	},
	{[]string{"time.AfterFunc"}, goroutine, "use perdure.Go with perdure.Sleep"},

	{
		[]string{
			"math/rand.New", "math/rand.NewSource", "math/rand.NewZipf", "math/rand/v2.New", "math/rand/v2.NewPCG",
			"math/rand/v2.NewChaCha8", "math/rand/v2.NewZipf",
		},
		nil, "",
	},
	{[]string{"math/rand.*", "math/rand/v2.*"}, random, "use ctx.Rand()"},
	{
		[]string{
			"crypto/rand.*", "hash/maphash.MakeSeed", "hash/maphash.Comparable", "hash/maphash.String",
			"hash/maphash.Bytes", "(*hash/maphash.Hash).Sum*", "(*hash/maphash.Hash).Seed",
		},
		random, "",
	},
	{
		[]string{
			"crypto/ed25519.GenerateKey", "crypto/ecdsa.GenerateKey", "crypto/rsa.GenerateKey",
			"crypto/rsa.GenerateMultiPrimeKey", "crypto/mlkem.GenerateKey*",
		},
		random, "do it in an activity",
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
		random, "use ctx.NewUUID()",
	},
	{
		[]string{
			"github.com/oklog/ulid.Make", "github.com/oklog/ulid/v2.Make", "github.com/oklog/ulid/v2.DefaultEntropy",
			"github.com/segmentio/ksuid.New*", "github.com/rs/xid.New*", "github.com/lithammer/shortuuid*.New*",
			"github.com/matoous/go-nanoid*.New*",
		},
		random, "use ctx.NewUUID()",
	},
	{[]string{"github.com/oklog/ulid.Now", "github.com/oklog/ulid/v2.Now"}, clock, ""},

	{
		[]string{
			"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.Hostname", "os.Getpid", "os.Getppid",
			"os.Getuid", "os.Getgid", "os.Getwd", "os.Executable", "os.UserHomeDir", "os.TempDir", "os.Args",
		},
		environment, "",
	},
	{
		[]string{
			"syscall.Getenv", "syscall.Environ", "runtime.NumCPU", "runtime.NumGoroutine", "runtime.GOMAXPROCS",
			"runtime.ReadMemStats", "os/user.*", "time.LoadLocation", "mime.TypeByExtension", "mime.ExtensionsByType",
			"crypto/x509.SystemCertPool", "runtime/debug.ReadBuildInfo",
		},
		environment, "",
	},
	{[]string{"(time.Time).Local", "time.Local"}, environment, "use UTC"},

	{
		[]string{
			"(*sync.WaitGroup).Go", "(*golang.org/x/sync/errgroup.Group).Go",
			"(*golang.org/x/sync/errgroup.Group).TryGo", "runtime.Goexit", "runtime.Gosched", "context.AfterFunc",
		},
		goroutine, "",
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
		syncing, "",
	},

	{
		[]string{
			"context.WithValue", "context.Cause", "context.Background", "context.TODO", "context.With*",
			"(context.Context).*", "os/signal.NotifyContext",
		},
		contexts, "",
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
		inputOutput, "",
	},
	{[]string{"(*os/exec.Cmd).*", "os/exec.LookPath", "os/exec.Command*"}, inputOutput, ""},
	{
		[]string{"fmt.Print", "fmt.Printf", "fmt.Println", "fmt.Scan*"},
		inputOutput,
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
		inputOutput, "",
	},
	{
		[]string{
			"net/http.Get", "net/http.Head", "net/http.Post", "net/http.PostForm", "net/http.ListenAndServe*",
			"net/http.Serve*", "(*net/http.Client).*", "(*net/http.Transport).*", "(net/http.RoundTripper).*",
			"(*net/http.Server).*",
		},
		inputOutput, "",
	},
	{
		[]string{
			"text/template.ParseFiles", "text/template.ParseGlob", "(*text/template.Template).ParseFiles",
			"(*text/template.Template).ParseGlob", "html/template.ParseFiles", "html/template.ParseGlob",
			"(*html/template.Template).ParseFiles", "(*html/template.Template).ParseGlob", "archive/zip.OpenReader",
			"plugin.Open", "log/syslog.*", "(*log/syslog.Writer).*",
		},
		inputOutput, "",
	},
	{
		[]string{
			"database/sql.Open*", "(*database/sql.DB).*", "(*database/sql.Tx).*", "(*database/sql.Conn).*",
			"(*database/sql.Stmt).*", "(*database/sql.Rows).*", "(*database/sql.Row).*",
		},
		inputOutput, "",
	},
	{
		[]string{
			"github.com/aws/aws-sdk-go-v2/config.Load*", "(*github.com/aws/aws-sdk-go-v2/service/*",
			"(*github.com/aws/aws-sdk-go-v2/feature/*", "(*github.com/aws/aws-sdk-go/service/*",
		},
		inputOutput, "",
	},
	{
		[]string{
			"github.com/jackc/pgx/v5.Connect*", "(*github.com/jackc/pgx/v5.Conn).*",
			"(*github.com/jackc/pgx/v5/pgxpool.Pool).*", "(*github.com/redis/go-redis/v9.*", "(*gorm.io/gorm.DB).*",
			"(*go.mongodb.org/mongo-driver/*", "(*github.com/go-resty/resty/v2.Request).*",
			"google.golang.org/grpc.NewClient", "(*google.golang.org/grpc.ClientConn).*",
		},
		inputOutput, "",
	},
	{
		[]string{
			root + "/client.*", "(*" + root + "/client.*", root + "/provider/*", "(*" + root + "/provider/*",
			root + "/dispatch.*", root + "/lambdahandler.*",
		},
		inputOutput, "use a function that takes the orchestration context, or do it in an activity",
	},

	{
		[]string{
			"log.Fatal*", "log.Panic*", "log.Print*", "log.Output", "log.Default", "(*log.Logger).*", "log/slog.Debug*",
			"log/slog.Info*", "log/slog.Warn*", "log/slog.Error*", "log/slog.Log*", "log/slog.Default",
		},
		logging, "",
	},
	{
		[]string{
			"github.com/sirupsen/logrus.*", "(*github.com/sirupsen/logrus.*", "(*go.uber.org/zap.Logger).*",
			"(*go.uber.org/zap.SugaredLogger).*", "go.uber.org/zap.L", "go.uber.org/zap.S",
			"(*github.com/rs/zerolog.Logger).*", "github.com/rs/zerolog/log.*", "github.com/golang/glog.*",
			"k8s.io/klog*",
		},
		logging, "",
	},

	// Values that are variables.
	{[]string{"net/http.DefaultClient", "net/http.DefaultTransport"}, inputOutput, ""},
}

// index finds entries: exact names at once, patterns in the order of the table.
var index = sync.OnceValue(func() map[string]*known {
	exact := map[string]*known{}
	for i := range table {
		for _, name := range table[i].names {
			if _, there := exact[name]; !there && !strings.HasSuffix(name, "*") {
				exact[name] = &table[i]
			}
		}
	}
	return exact
})

// lookUp returns what is known of a name; ok is false where nothing is. The rule of an entry without an effect is nil.
func lookUp(name string) (k *known, ok bool) {
	if k, ok := index()[name]; ok {
		return k, true
	}
	for i := range table {
		for _, pattern := range table[i].names {
			if match(pattern, name) {
				return &table[i], true
			}
		}
	}
	return nil, false
}

// match reports whether a name is one that a pattern stands for: * is any text.
func match(pattern, name string) bool {
	if !strings.Contains(pattern, "*") {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(pattern, "(*"), "*")
	if rest, method := strings.CutPrefix(pattern, "(*"); method {
		if !strings.HasPrefix(name, "(*") {
			return false
		}
		parts, name = strings.Split(rest, "*"), name[2:]
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	for _, part := range parts[1:] {
		at := strings.Index(name, part)
		if at < 0 {
			return false
		}
		name = name[at+len(part):]
	}
	return name == "" || strings.HasSuffix(pattern, "*")
}

// nameOf is the name under which an object is listed.
func nameOf(obj types.Object) string {
	switch obj := obj.(type) {
	case *types.Func:
		return obj.Origin().FullName()
	case *types.Var:
		if obj.Pkg() != nil {
			return obj.Pkg().Path() + "." + obj.Name()
		}
	}
	return obj.Name()
}
