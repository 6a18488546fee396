// Package history defines the events of an orchestration's history and their JSON format.
//
// The history of an execution is a sequence of events, numbered from 1 without gaps. Input events record external
// results, such as a completed activity or a fired timer. Decision events record decisions of the code, such as a
// scheduled activity. A replay of the input events with the same code must result in the same decisions.
//
// This example prints the activities in a file that `perdure export` wrote:
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
// The format is compatible across releases. Kinds and fields are added and never renamed or removed. See
// docs/internals/formats.md.
//
// The package imports no other package of this module.
package history
