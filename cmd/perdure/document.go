package main

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// historyFormat names the document that history --json prints and that perduretest replays.
const historyFormat = "perdure.history/1"

type document struct {
	Format     string              `json:"format"`
	InstanceID string              `json:"instanceId"`
	Name       string              `json:"name"`
	Executions []executionDocument `json:"executions"`
}

type executionDocument struct {
	ExecutionID string          `json:"executionId"`
	Number      int64           `json:"number"`
	Events      json.RawMessage `json:"events"`
}

func (c *command) printDocument(s client.Status, events []history.Event) error {
	encoded, err := history.Encode(events)
	if err != nil {
		return fmt.Errorf("instance %q: %w", s.InstanceID, err)
	}
	return c.printJSON(document{
		Format: historyFormat, InstanceID: s.InstanceID, Name: s.Orchestration,
		Executions: []executionDocument{{ExecutionID: s.ExecutionID, Number: events[0].Number, Events: encoded}},
	})
}
