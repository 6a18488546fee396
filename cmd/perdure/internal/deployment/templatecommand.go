package deployment

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/infra/template"
)

// PrintTemplate returns the command template.
func PrintTemplate(env *cli.Env) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "template", Short: "Print the CloudFormation template",
		Long: `Print the CloudFormation template of a hub, for perdure deploy, Terraform and other tools.

The template has one work queue, named default. Its parameters have descriptions. Upload the code of each
function as <CodePrefix><build ID>.zip to CodeBucket. A build ID, such as the hash of the code, must change
with the code. The zip file has the binary bootstrap. The template is too large for a request: upload it
to a bucket, too. The stack requires CAPABILITY_IAM.`,
		Example: `  perdure template --out template.json`,
		Args:    func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "") },
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return env.Print(string(template.JSON))
			}
			if err := os.WriteFile(out, template.JSON, 0o644); err != nil { //nolint:gosec // the template is public
				return fmt.Errorf("--out: %w", err)
			}
			return nil
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return cmd
}
