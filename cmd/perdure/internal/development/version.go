// Package development contains the commands that create, run and check an application before its deployment.
package development

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// VersionInfo is the --json output of version.
type VersionInfo struct {
	// Version is the module version, such as v0.3.0, or "(devel)" if the build is not a release.
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source code, if known
	Modified bool   `json:"modified,omitempty"` // whether the source code differed from the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

const develVersion = "(devel)"

// Version returns the command version.
func Version(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this tool",
		Example: `  perdure version --json`,
		Args:    func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "") },
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			text := fmt.Sprintf("perdure %s, %s, %s", v.Version, v.Go, v.Platform)
			if v.Revision != "" {
				text += ", " + v.Revision
			}
			if v.Modified {
				text += " (modified)"
			}
			return env.PrintResult(v, text+"\n")
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func thisVersion() VersionInfo {
	v := VersionInfo{Version: develVersion, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if own := moduleOf(build); own.Version != "" {
		v.Version = own.Version
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

const modulePath = "github.com/perdure/perdure"

// moduleOf returns this module in a build: the main module, or a dependency if another module runs the tool.
func moduleOf(build *debug.BuildInfo) debug.Module {
	if build.Main.Path == modulePath {
		return build.Main
	}
	for _, d := range build.Deps {
		if d.Path == modulePath && d.Replace == nil {
			return *d
		}
	}
	return debug.Module{}
}
