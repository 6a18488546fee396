package development

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

//go:embed newapp/*.tmpl
var newApp embed.FS

type initFlags struct{ module, replace string }

// Init returns the command init.
func Init(env *cli.Env) *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use: "init [DIR]", Short: "Create an application",
		Long: `Create an application in DIR, by default the current directory.

The application has a registry with an orchestration and an activity, the four functions, a test in virtual
time, a CDK app and a Makefile. DIR must not have a go.mod. The command runs go mod tidy to download the
dependencies. The application requires the perdure release of this tool, or the checkout that --replace
specifies. A tool that was built from a checkout requires --replace.`,
		Example: `  perdure init orders --module example.com/orders
  go run ./cmd/perdure init ../orders --replace .`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), env, directory(args))
		},
	}
	cmd.Flags().StringVar(&f.module, "module", "", "module path (default: example.com/ and the directory name)")
	cmd.Flags().StringVar(&f.replace, "replace", "", "path of a perdure checkout to use instead of a release")
	return cmd
}

// application is the data of the templates.
type application struct {
	Module, Package, Stack, Version, Replace string
	// Function, Start, Does and Registry describe one function. They are empty for the other files.
	Function, Start, Does string
	Registry              bool
}

var functions = []application{
	{
		Function: "orchestrator", Start: "StartOrchestrator", Registry: true,
		Does: "runs the orchestrations of a task hub",
	},
	{Function: "worker", Start: "StartWorker", Registry: true, Does: "runs the activities of a work queue"},
	{Function: "renewer", Start: "StartRenewer", Does: "handles due timers and runs the sweeper"},
	{Function: "api", Start: "StartAPI", Does: "serves the HTTP API of a task hub"},
}

// run writes an application into a directory.
func (f initFlags) run(ctx context.Context, env *cli.Env, dir string) error {
	app, err := describeApplication(dir, f, thisVersion().Version)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fmt.Errorf("%s already has a go.mod; choose another directory", dir)
	}

	files, err := app.files()
	if err != nil {
		return err
	}
	if name := firstExisting(dir, files); name != "" {
		return fmt.Errorf("%s already exists; choose another directory", name)
	}
	for _, file := range files {
		if err := writeNew(filepath.Join(dir, file.name), file.content); err != nil {
			return err
		}
	}
	fmt.Fprintf(env.Stderr, "perdure: wrote %d files to %s; running go mod tidy\n", len(files), dir)
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = dir
	tidy.Stdout = env.Stderr
	tidy.Stderr = env.Stderr
	if err := tidy.Run(); err != nil {
		return fmt.Errorf("go mod tidy in %s: %w", dir, err)
	}
	return app.report(env, dir, files)
}

// firstExisting returns the first file that exists in a directory, or "" if none does.
func firstExisting(dir string, files []newFile) string {
	for _, file := range files {
		name := filepath.Join(dir, file.name)
		if _, err := os.Lstat(name); err == nil {
			return name
		}
	}
	return ""
}

// report prints the created files or the next steps.
func (a application) report(env *cli.Env, dir string, files []newFile) error {
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.name
	}
	created := struct {
		Module string   `json:"module"`
		Files  []string `json:"files"`
	}{a.Module, names}
	return env.PrintResult(created, fmt.Sprintf("created module %s in %s\n\n"+
		"Next steps:\n  cd %s\n  go test ./...\n  go tool perdure dev\n", a.Module, dir, term.ShellQuote(dir)))
}

var notAllowed = regexp.MustCompile(`[^a-z0-9]+`)

// describeApplication derives the names of an application from the directory and the flags.
func describeApplication(dir string, f initFlags, version string) (application, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return application{}, fmt.Errorf("init: %w", err)
	}
	app := application{Module: f.module, Version: version}
	if app.Module == "" {
		name := notAllowed.ReplaceAllString(strings.ToLower(filepath.Base(absolute)), "-")
		app.Module = "example.com/" + strings.Trim(name, "-")
	}
	app.Package = strings.TrimLeft(notAllowed.ReplaceAllString(strings.ToLower(path.Base(app.Module)), ""),
		"0123456789")
	if app.Package == "" || app.Package == "main" {
		app.Package = "app"
	}
	app.Stack = strings.ToUpper(app.Package[:1]) + app.Package[1:]

	if f.replace == "" {
		if version == develVersion || strings.Contains(version, "+dirty") {
			return app, errors.New("this tool was built from a checkout, not from a release; " +
				"specify the checkout with --replace")
		}
		return app, nil
	}
	app.Version = "v0.0.0"
	if app.Replace, err = filepath.Abs(f.replace); err != nil {
		return app, fmt.Errorf("init: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(app.Replace, "go.mod"))
	if err != nil || !bytes.HasPrefix(b, []byte("module "+modulePath+"\n")) {
		return app, fmt.Errorf("--replace: %s is not a checkout of %s", app.Replace, modulePath)
	}
	return app, nil
}

// newFile is a file of the application.
type newFile struct {
	name    string
	content []byte
}

// files executes the templates. go.mod is the first file, because init rejects a directory that has a go.mod.
func (a application) files() ([]newFile, error) {
	templates, err := template.ParseFS(newApp, "newapp/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	var files []newFile
	add := func(name, from string, with application) {
		var b bytes.Buffer
		err = errors.Join(err, templates.ExecuteTemplate(&b, from, with))
		files = append(files, newFile{name, b.Bytes()})
	}
	add("go.mod", "go.mod.tmpl", a)
	add(a.Package+".go", "app.go.tmpl", a)
	add(a.Package+"_test.go", "app_test.go.tmpl", a)
	for _, f := range functions {
		with := a
		with.Function, with.Start, with.Does, with.Registry = f.Function, f.Start, f.Does, f.Registry
		add("functions/"+f.Function+"/main.go", "function.go.tmpl", with)
	}
	add("infra/go.mod", "infra.go.mod.tmpl", a)
	add("infra/main.go", "infra.go.tmpl", a)
	add("infra/cdk.json", "cdk.json.tmpl", a)
	add("Makefile", "Makefile.tmpl", a)
	add(".gitignore", "gitignore.tmpl", a)
	add("README.md", "README.md.tmpl", a)
	return files, err
}

// writeNew writes a file that must not exist.
func writeNew(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // source files are readable
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return nil
}
