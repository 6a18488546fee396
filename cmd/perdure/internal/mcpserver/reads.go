package mcpserver

import "github.com/modelcontextprotocol/go-sdk/mcp"

// addReads adds the tools that change nothing.
func (s *server) addReads() {
	read := func(name, title, description string) *mcp.Tool {
		closed := false
		return &mcp.Tool{
			Name: name, Title: title, Description: description + untrustedNotice,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
		}
	}
	addTool(s, read("list", "List instances", "List instances, the newest first. Few of many instances may match: "+
		"a page can be short or empty although nextCursor is set."), s.list)
	addTool(s, read("status", "Show an instance", "Show the status, result, failure, notes and pending tasks of an "+
		"instance, and the next step."), s.status)
	addTool(s, read("history", "Show events", "Show events of an instance in order, by pages."), s.history)
	addTool(s, read("why", "Show cancellations and causes", "Show what was cancelled, by whom and why, how the work "+
		"ended, and the root cause across parents and children. It also explains failed and waiting instances."), s.why)
	addTool(s, read("pending", "Show what still runs", "Show the tasks that an instance waits for with their "+
		"attempts and last errors, the children that have not ended, and the next step."), s.pending)
	addTool(s, read("blocked", "Diagnose blocked instances", "List blocked instances, or show why one is blocked: "+
		"the difference between history and code, the builds, and the next step."), s.blocked)
	addTool(s, read("cost", "Estimate the cost of an instance", "Estimate the cost of an instance from its history "+
		"and AWS list prices. The call reads the whole history."), s.cost)
	addTool(s, read("dead_letters", "List dead letters", "List dead letters: records that could not be processed. "+
		"The call hides them from other readers while it runs."), s.deadLetters)
	addTool(s, read("count_dead_letters", "Count dead letters", "Count the dead letters of each queue, "+
		"approximately."), s.countDeadLetters)
	addTool(s, read("queues", "List queues and workers", "List the queues with their number of work items and dead "+
		"letters, and the last report of their workers. It shows whether work waits without a worker."), s.queues)
	addTool(s, read("runbooks", "Search the runbooks", "Search the pages for operators, with runbooks for alarms, "+
		"statuses and errors. Their text is from this program."), s.runbooks)
}
