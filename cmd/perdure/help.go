package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/activities"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/development"
	"github.com/perdure/perdure/cmd/perdure/internal/instances"
	"github.com/perdure/perdure/cmd/perdure/internal/operations"
	"github.com/perdure/perdure/cmd/perdure/internal/schedules"
)

const rootLong = `Run and operate durable orchestrations on AWS.`

const rootExample = `  perdure start fulfil --id order-7 --input '{"order": 7}'`

// rootNotes are printed below the commands in the root help.
const rootNotes = `Exit codes: 0 success, 1 error, 2 instance failed, 3 instance cancelled or terminated, 4 timeout.
Exceptions: verify, import, doctor. With --json, stdout has only JSON, except for dev and worker.
Errors are one line on stderr. Run "perdure <command> --help" for details and examples.
`

// addCommands adds all commands to the root, in groups.
func addCommands(root *cobra.Command, c *cli.Env) {
	addGroup(root, "instances", instances.Start(c), instances.Status(c), instances.Wait(c), instances.Watch(c), instances.List(c), instances.History(c),
		instances.Why(c), instances.Executions(c), instances.Query(c), instances.Update(c), instances.Call(c), instances.State(c), instances.Raise(c),
		instances.Cancel(c), instances.Terminate(c), instances.Restart(c), instances.Purge(c), instances.Pause(c), instances.Resume(c), instances.Export(c),
		instances.Cost(c))
	addGroup(root, "activities", append(activities.TokenCommands(c), activities.Worker(c))...)
	addGroup(root, "schedules", schedules.New(c))
	addGroup(root, "operations", operations.Versions(c), operations.Jobs(c), operations.UI(c), operations.DeadLetters(c), operations.Reconcile(c),
		operations.Doctor(c), operations.Sweep(c))
	const developmentGroup = "development"
	addGroup(root, developmentGroup, development.Dev(c), development.Init(c), development.Vet(c), development.Verify(c), development.Import(c), development.Version(c))

	root.SetHelpCommandGroupID(developmentGroup)
	root.SetCompletionCommandGroupID(developmentGroup)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Short = "Generate a shell completion script"
		case "help":
			cmd.Short = "Show the help of a command"
		}
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd != root {
			help(cmd, args)
			return
		}
		_, _ = fmt.Fprint(cmd.OutOrStdout(), rootHelp(root)) // as cobra does
	})
}

// addGroup adds commands in a group of the root help.
func addGroup(root *cobra.Command, id string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: strings.ToUpper(id[:1]) + id[1:] + ":"})
	for _, cmd := range commands {
		cmd.GroupID = id
		root.AddCommand(cmd)
	}
}

// rootHelp returns the help of the root command. It has two commands per line, so that all commands fit on one screen.
func rootHelp(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:   perdure <command> [flags]\nExample: %s\n", root.Long,
		strings.TrimSpace(root.Example))
	for _, group := range root.Groups() {
		commands := slices.DeleteFunc(slices.Clone(root.Commands()), func(cmd *cobra.Command) bool {
			return cmd.GroupID != group.ID
		})
		fmt.Fprintf(&b, "\n%s\n", group.Title)
		rows := (len(commands) + 1) / 2
		for i := range rows {
			line := helpEntry(commands[i])
			if other := i + rows; other < len(commands) {
				line += helpEntry(commands[other])
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	fmt.Fprintf(&b, "\nFlags:\n%s\n%s", root.LocalFlags().FlagUsages(), rootNotes)
	return b.String()
}

// helpEntry returns a command and its short description, padded to half a line of 100 columns.
func helpEntry(cmd *cobra.Command) string {
	return fmt.Sprintf("  %-12s  %-34s", cmd.Name(), cmd.Short)
}
