// Package codec provides implementations of perdure.Codec. Zstd compresses, Envelope encrypts with data keys from a key
// service such as AWS KMS, and Chain combines codecs:
//
//	keys := kmskeys.New(kms.NewFromConfig(cfg), "alias/orders", "orders")
//	c := codec.Chain("orders-2026", codec.Zstd(), codec.Envelope("orders-2026", keys))
//	lambdahandler.StartWorker(registry, lambdahandler.WithCodec(c))
//
// The module codec/kmskeys provides keys of AWS KMS. See docs/guides/large-payloads-and-codecs.md.
package codec
