package simaws

import (
	"iter"
)

const (
	// maxPayload is the payload limit of a synchronous invocation, 6 MB. A mapping passes a batch in one invocation
	// (https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html, BatchSize).
	maxPayload = 6 << 20
	// recordBytes is the size of a record in an event without the content of its message: names, timestamps, checksums
	// and the ARN of the queue. It allows for receipts of SQS, which are longer than receipts of the simulation.
	recordBytes = 1500
)

// payloads splits a batch, in order, into parts that fit the payload of an invocation.
func payloads(batch []delivery) iter.Seq[[]delivery] {
	return func(yield func([]delivery) bool) {
		if fits(batch) {
			yield(batch)
			return
		}
		size, from := 0, 0
		for i := range batch {
			record := recordSize(&batch[i])
			if size += record; size > maxPayload && i > from {
				if !yield(batch[from:i]) {
					return
				}
				size, from = record, i
			}
		}
		yield(batch[from:])
	}
}

// fits reports whether a batch is within the limit even if all characters are escaped. It does not read the bodies.
func fits(batch []delivery) bool {
	size := 0
	for i := range batch {
		if size += recordBytes + 2*batch[i].bytes(); size > maxPayload {
			return false
		}
	}
	return true
}

// recordSize returns the number of bytes of a message in the JSON of an event.
func recordSize(d *delivery) int {
	escaped := 0
	for _, c := range []byte(d.body) {
		switch c {
		case '"', '\\', '\n', '\r', '\t': // SQS rejects other control characters
			escaped++
		}
	}
	return recordBytes + d.bytes() + escaped
}

// bytes returns the size of the content of a message. Binary values of attributes count twice, because base64 is at
// most twice as long.
func (d *delivery) bytes() int {
	size := len(d.receipt) + len(d.body)
	for name, a := range d.attributes {
		size += len(name) + 2*len(a.BinaryValue)
		if a.StringValue != nil {
			size += len(*a.StringValue)
		}
	}
	return size
}
