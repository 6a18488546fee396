package instances

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// Cost returns the command cost.
func Cost(env *cli.Env) *cobra.Command {
	cmd := env.AdminCommand("cost ID", "Estimate the cost of an instance", cli.ArgID,
		func(ctx context.Context, a *admin.Client, id string) error {
			cost, err := a.EstimateCost(ctx, id)
			if err != nil {
				return err
			}
			return env.PrintResult(cost, CostText(&cost))
		})
	cmd.Long = cmd.Short + `.

The estimate uses the history and AWS list prices. It assumes warm turns and no other load. Under load the
same work costs less, because batches are shared. Cold turns cost more. The estimate excludes the run time
of activities, their calls to other services, child instances, client requests and logs. The command reads
the whole history. Measured costs are in docs/operate/cost.md.`
	cmd.Example = `  perdure cost order-7
  perdure cost order-7 --json | jq .dollars`
	return cmd
}

// CostText returns the cost of an instance as text.
func CostText(cost *admin.CostEstimate) string {
	var b term.Labels
	b.Line("Instance", cost.InstanceID)
	million := cost.Dollars * 1e6
	b.Line("Cost", fmt.Sprintf("$%.6f ($%.2f per million instances)", cost.Dollars, million))
	b.Line("Executions", term.Number(cost.Executions))
	b.Line("Turns", term.Number(cost.Turns))
	b.Line("Activities", term.Number(cost.Activities))
	b.Line("Prices", fmt.Sprintf("%s, %s, without free tiers", cost.Region, cost.AsOf))
	t := term.Table{Header: []string{"ITEM", ">QUANTITY", ">DOLLARS", "UNIT"}}
	for _, l := range cost.Lines {
		t.Add(l.Item, strconv.FormatFloat(l.Quantity, 'g', 6, 64), fmt.Sprintf("%.8f", l.Dollars), l.Description)
	}
	return b.String() + "\n" + t.String()
}
