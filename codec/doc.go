// Package codec has codecs for payloads (perdure.Codec): Zstd compresses, Envelope encrypts with data keys that a service such as AWS KMS wraps, and Chain
// does one after the other. docs/guides/large-payloads-and-codecs.md shows them at work, and module codec/kmskeys has the keys of KMS.
package codec
