package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func costVerb(c *command) *cobra.Command {
	cmd := c.verb("cost ID", "Say what an instance has cost, by its history and AWS's list prices", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			cost, err := client.CostOf(ctx, cl, id)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(cost)
			}
			return c.print(describeCost(&cost))
		})
	cmd.Long = cmd.Short + `.

It is reckoned, not metered: as for an instance with nobody beside it, whose turns are warm. With others
beside it the same costs less, since batches are shared, and cold turns cost more. What activities do and
how long they take is not in it, nor are children, which have a cost of their own, what clients ask, and
logs. docs/cost.md has what is measured. It reads the whole history.`
	cmd.Example = `  perdure cost order-7
  perdure cost order-7 --json | jq .dollars`
	return cmd
}

func describeCost(cost *client.Cost) string {
	var b labelled
	b.line("Instance", cost.InstanceID)
	b.line("Cost", fmt.Sprintf("$%.6f, $%.2f for a million like it", cost.Dollars, cost.Dollars*1e6)) //nolint:mnd // a million
	b.line("Executions", strconv.FormatInt(cost.Executions, 10))
	b.line("Turns", strconv.FormatInt(cost.Turns, 10))
	b.line("Activities", strconv.FormatInt(cost.Activities, 10))
	b.line("Prices", fmt.Sprintf("%s of %s, without free tiers", cost.Region, cost.AsOf))
	t := table{header: []string{"ITEM", ">QUANTITY", ">DOLLARS", "OF"}}
	for _, l := range cost.Lines {
		t.add(l.Item, strconv.FormatFloat(l.Quantity, 'g', 6, 64), fmt.Sprintf("%.8f", l.Dollars), l.What) //nolint:mnd // hundredths of a millionth
	}
	return b.String() + "\n" + t.String()
}
