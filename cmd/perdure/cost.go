package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
)

func costVerb(c *command) *cobra.Command {
	cmd := c.operatorVerb("cost ID", "Estimate the cost of an instance", argID,
		func(ctx context.Context, a *admin.Client, id string) error {
			cost, err := a.EstimateCost(ctx, id)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(cost)
			}
			return c.print(describeCost(&cost))
		})
	cmd.Long = cmd.Short + `.

The estimate uses the history and AWS list prices. It assumes warm turns and no other load. Under load the
same work costs less, because batches are shared. Cold turns cost more. It does not include the duration of
activities, the calls that they make, child instances, client requests and logs. The command reads the whole
history. Measured costs are in docs/operate/cost.md.`
	cmd.Example = `  perdure cost order-7
  perdure cost order-7 --json | jq .dollars`
	return cmd
}

func describeCost(cost *admin.CostEstimate) string {
	var b labelled
	b.line("Instance", cost.InstanceID)
	million := cost.Dollars * 1e6 //nolint:mnd // a million
	b.line("Cost", fmt.Sprintf("$%.6f ($%.2f per million instances)", cost.Dollars, million))
	b.line("Executions", strconv.FormatInt(cost.Executions, 10))
	b.line("Turns", strconv.FormatInt(cost.Turns, 10))
	b.line("Activities", strconv.FormatInt(cost.Activities, 10))
	b.line("Prices", fmt.Sprintf("%s, %s, without free tiers", cost.Region, cost.AsOf))
	t := table{header: []string{"ITEM", ">QUANTITY", ">DOLLARS", "UNIT"}}
	for _, l := range cost.Lines {
		t.add(l.Item, strconv.FormatFloat(l.Quantity, 'g', 6, 64), fmt.Sprintf("%.8f", l.Dollars), l.Description) //nolint:mnd // hundredths of a millionth
	}
	return b.String() + "\n" + t.String()
}
