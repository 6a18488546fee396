package history

import (
	"encoding/json"
	"errors"
	"fmt"
)

// DocumentFormat is the name of the format of a Document.
const DocumentFormat = "perdure.history/1"

// Document is the whole history of an instance in one file, as written by `perdure export` and replayed in unit tests.
type Document struct {
	Format     string              `json:"format"` // DocumentFormat
	InstanceID string              `json:"instanceId"`
	Name       string              `json:"name"` // name of the orchestration
	Executions []DocumentExecution `json:"executions"`
}

// DocumentExecution is one execution of an instance and its events.
type DocumentExecution struct {
	ExecutionID string  `json:"executionId"`
	Number      int64   `json:"number"` // from 1
	Events      []Event `json:"events"`
}

// NewDocument returns a document of an instance's executions, oldest first. It returns an error if an execution is not
// a valid history.
func NewDocument(instanceID, name string, executions ...DocumentExecution) (Document, error) {
	d := Document{Format: DocumentFormat, InstanceID: instanceID, Name: name, Executions: executions}
	return d, d.validate()
}

// DecodeDocument decodes a document of this release or an earlier release. It returns an error if the format is unknown
// or an execution is not a valid history.
func DecodeDocument(b []byte) (Document, error) {
	var d Document
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("history: document: %w", err)
	}
	return d, d.validate()
}

func (d *Document) validate() error {
	switch {
	case d.Format != DocumentFormat:
		return fmt.Errorf("history: document: unknown format %q; expected %q", d.Format, DocumentFormat)
	case len(d.Executions) == 0:
		return fmt.Errorf("history: document: instance %q has no executions", d.InstanceID)
	}
	for i := range d.Executions {
		if err := d.Executions[i].validate(); err != nil {
			return fmt.Errorf("history: document: instance %q: execution %s: %w", d.InstanceID,
				d.Executions[i].ExecutionID, err)
		}
	}
	return nil
}

func (x *DocumentExecution) validate() error {
	if len(x.Events) == 0 {
		return errors.New("has no events")
	}
	for i := range x.Events {
		if err := x.Events[i].Validate(); err != nil {
			return err
		}
	}
	_, err := Concat(x.Events)
	return err
}

// Find returns the data that a reference in one of the executions refers to, which is a document or an encoded payload.
// It returns an error if the document does not contain the data, or if the data differs from the reference.
func (d *Document) Find(ref Reference) (json.RawMessage, error) {
	at, err := ParseDataLocation(ref.Ref)
	if err != nil {
		return nil, err
	}
	for i := range d.Executions {
		if d.Executions[i].ExecutionID != at.ExecutionID {
			continue
		}
		events := d.Executions[i].Events
		if doc, ok := at.DocumentIn(events); ok && len(doc) > 0 {
			return doc, ref.Check(doc)
		}
		if doc, _ := at.Find(events); at.Encoded && !doc.IsEncoded() && len(doc) > 0 { // decoded by the export
			return json.RawMessage(doc), nil
		}
	}
	return nil, errors.New("not in the recorded history; record all executions of the instance")
}
