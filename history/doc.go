// Package history defines the events of an orchestration's history and their JSON format.
//
// The history of an execution is a sequence of events, numbered from 1 without gaps. Input events report what happened,
// such as a completed activity or a fired timer. Decisions record what the orchestration decided, such as a scheduled
// activity. Replaying the input events through the same code must give the same decisions.
//
// For example, print the activities in a file that `perdure export` wrote:
//
//	doc, err := history.DecodeDocument(file)
//	if err != nil {
//		return err
//	}
//	for _, x := range doc.Executions {
//		for i := range x.Events {
//			if e := &x.Events[i]; e.Kind == history.ActivityScheduled {
//				fmt.Println(x.Number, e.ID, e.Name)
//			}
//		}
//	}
//
// The format is compatible across releases: kinds and fields are added and never renamed or removed.
// docs/internals/formats.md describes it.
//
// The package imports no other package of this module.
package history
