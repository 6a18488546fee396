package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/activities"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
	"github.com/perdure/perdure/cmd/perdure/internal/development"
	"github.com/perdure/perdure/cmd/perdure/internal/instances"
	"github.com/perdure/perdure/cmd/perdure/internal/mcpserver"
	"github.com/perdure/perdure/cmd/perdure/internal/operations"
	"github.com/perdure/perdure/cmd/perdure/internal/schedules"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest"
)

const rootLong = `Run and operate durable orchestrations on AWS.`

const rootExample = `  perdure start fulfil --id order-7 --input '{"order": 7}'`

// rootNotes are printed below the commands in the root help.
const rootNotes = `Exit codes: 0 success, 1 error, 2 instance failed, 3 instance cancelled or terminated, 4 timeout.
Exceptions: verify, import, doctor, selftest. Errors are lines on stderr. --json prints only JSON.
`

// addCommands adds all commands to the root, in groups.
func addCommands(root *cobra.Command, env *cli.Env) {
	addGroup(root, "instances",
		instances.Start(env), instances.Status(env), instances.Wait(env), instances.Watch(env), instances.List(env),
		instances.History(env), instances.Why(env), instances.Executions(env), instances.Query(env),
		instances.Update(env), instances.Call(env), instances.State(env), instances.Raise(env),
		instances.Cancel(env), instances.Terminate(env), instances.Restart(env), instances.Purge(env),
		instances.Pause(env), instances.Resume(env), instances.Export(env), instances.Cost(env),
		instances.Annotate(env))
	addGroup(root, "activities", append(activities.TokenCommands(env), activities.Worker(env))...)
	addGroup(root, "schedules", schedules.New(env))
	addGroup(root, "operations",
		operations.Versions(env), operations.Jobs(env), operations.Queues(env), operations.UI(env),
		mcpserver.Command(env), operations.DeadLetters(env), operations.Keys(env), operations.Reconcile(env),
		operations.Doctor(env), operations.Sweep(env), operations.WhoAmI(env), selftest.Command(env))
	const developmentGroup = "development"
	addGroup(root, developmentGroup,
		development.Dev(env), development.Init(env), development.Vet(env), development.Verify(env),
		development.Import(env), deployment.Deploy(env), deployment.PrintTemplate(env), development.Version(env))

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
		_, _ = fmt.Fprint(cmd.OutOrStdout(), rootHelp(root)) // cobra also ignores write errors
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
	fmt.Fprintf(&b, "%s\nUsage:   perdure <command> [flags]; perdure <command> --help has details and examples\n"+
		"Example: %s\n", root.Long, strings.TrimSpace(root.Example))
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
	flags := root.LocalFlags()
	flags.Lookup("help").Hidden = true // the second line mentions it
	fmt.Fprintf(&b, "\nFlags:\n%s%s", flags.FlagUsages(), rootNotes)
	return b.String()
}

// helpEntry returns a command and its short description, padded to half a line of 100 columns.
func helpEntry(cmd *cobra.Command) string {
	return fmt.Sprintf("  %-12s  %-34s", cmd.Name(), cmd.Short)
}
