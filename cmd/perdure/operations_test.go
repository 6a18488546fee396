package main

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
)

// noOperation contains the commands that do not operate on a hub's data, with the reason.
var noOperation = map[string]string{
	"completion": "shell", "help": "shell", "version": "this program", "ui": "serves the web UI",
	"mcp":    "serves other operations to assistants",
	"worker": "runs a worker", "dev": "runs an application", "init": "writes source code", "vet": "checks source code",
	"verify": "replays histories", "import": "converts a history", "versions": "summarizes lists",
	"doctor": "checks the AWS resources of a hub", "whoami": "describes the caller",
	"keys":   "changes items of the table",
	"deploy": "creates a hub", "template": "prints a template", "selftest": "creates a hub",
}

func TestOperations_commands_matchTable(t *testing.T) {
	t.Parallel()
	stated := map[string]bool{}
	for _, o := range api.Operations() {
		for _, name := range o.Command.Names {
			stated[name] = true
		}
	}
	exist := map[string]bool{}
	for _, cmd := range commandsBelow(rootOf()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "perdure ")
		exist[name] = true
		top, _, _ := strings.Cut(name, " ")
		if !cmd.HasSubCommands() && !stated[name] && noOperation[top] == "" {
			t.Errorf("perdure %s: no operation has this command", name)
		}
	}
	for name := range stated {
		if !exist[name] {
			t.Errorf("perdure %s: an operation has this command, which does not exist", name)
		}
	}
}
