package memhub_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest"
)

// TestConformance runs the mandatory tests of the suite, and the tests of the optional interfaces that the fake
// implements.
func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Harness{
		Capabilities: []providertest.Capability{providertest.VirtualTime},
		Lacks:        []provider.Capability{provider.CapabilityDeadLetterRecovery, provider.CapabilityRetention},
		Want:         providertest.Report{Ran: ran, NotApplicable: notApplicable},
		Open: func(t *testing.T, c providertest.Config, test func(*testing.T, providertest.Hub)) {
			t.Helper()
			var passed atomic.Int64 // nanoseconds
			began := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
			now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
			p := memhub.New(now, c.Visibility)
			test(t, providertest.Hub{
				Provider: p, Receive: p.Receive, ReceiveDead: p.ReceiveDead, Now: now,
				Advance: func(d time.Duration) { passed.Add(int64(d)) },
			})
		},
	})
}

// ran is the number of tests that run.
const ran = 327

// notApplicable lists tests that need faults, corruption, stale reads, polling or large payloads.
var notApplicable = []string{
	"atomicity/ALostResponseIsSuccess", "atomicity/ALostResponseOfALargeTurnIsSuccess",
	"atomicity/ARefusedCommitLeavesNothing", "atomicity/WhatIsNotSentIsFoundInTheSegment",
	"creation/ALostResponseIsTheSameStart", "creation/ARefusedStartLeavesNothing",
	"heads/AnEventualReadMayBeBehindAndIsNeverTorn", "heads/ATurnOnAStaleHeadIsAConflict",
	"heads/AnInstanceIsReadStronglyConsistent", "redispatch/AStatusThatWasNotWrittenIsWritten",
	"redispatch/AStatusThatWasNotWrittenIsRefreshed", "redispatch/AnEndIsNotRefreshed",
	"redispatch/AnEndThatWasNotWrittenIsWritten", "redispatch/UnsentOutputsAreSentAndTheEndIsWritten",
	"executions/ALostResponseIsSuccess", "executions/ARefusedCommitLeavesNothing",
	"executions/AnUnsentStartIsFoundAcross", "references/DamageHindersNoOther",
	"children/TheParentIsToldBeforeTheInstanceIsOver", "children/ALostStartResponseIsTheSameInstance",
	"blocked/ABlockThatWasNotWrittenIsWritten", "cancelflags/FetchAsksOnceForAnExecution",
	"cancelflags/FetchThatCannotAskSaysSo", "cancelflags/ARefusedCommitLeavesNoCancelFlag",
	"cancelflags/ALostResponseIsSuccess", "cancelflags/APollThatIsBehindPassesOverNothing",
	"cancelflags/AReadOfTheRecordIsNeverBehind", "cancelflags/RenewSurfacesCancelFlag",
	"cancelflags/RenewByTokenAndLockAlone", "cancelflags/RenewExtendsLockWhenCancelled",
	"cancelflags/ARenewalThatCannotReadStillExtends", "cancelflags/CancelDoesNotTouchAttempts",
	"cancelflags/TheEndOfADamagedHistoryCancelsTheRest", "cancelflags/AnUnreachableRecordIsAnError",
	"activity records/RecordsAreReadStrongly", "activity records/RefusedRecordsAreAnError",
	"activity records/AnUnreachableRecordIsAnError", "deletion/ALateStatusCannotUndoIt",
	"deletion/ItsParentIsToldHowItHadEnded", "deletion/WhatOutlivesItIsSent",
	"deletion/WhatOutlivesAnEarlierExecutionIsSent", "deletion/ADamagedOneGoes",
	"deletion/ADamagedOneThatIsOverIsNotEndedAgain", "deletion/ADamagedEndIsNotSaidAnew",
	"deletion/WhatADamagedOneConsumedIsKnown", "deletion/ItGoesOnWhereItStopped", "deletion/ALostResponseIsSuccess",
	"deletion/MeanwhileTheIDIsInUse", "deletion/AStartOfItsOwnIsNotAnsweredTwice",
	"deletion/ACancelMeanwhileIsAnswered", "deletion/OneThatStaysIsFound", "jobs/ItsOwnWriteAgainIsSuccess",
	"workitems/ARecordThatIsLeftIsNotDeleted", "workitems/WhenTheSendFailsTheRecordsStay",
	"workitems/WhenTheDeleteFailsTheOutcomeIsSent", "retries/AnAttemptThatWasNotSentIsSentByTheNextTelling",
	"retries/SettledIsReadStrongly", "poison/AMarkWhoseAnswerIsLostIsMadeOnce",
	"poison/AMarkTogetherWhoseAnswerIsLostIsMadeOnce", "poison/RefusedMarksAreErrors",
	"management/WhatNeedsAttentionIsCounted", "large payloads/WhatIsStoredIsReadAndListed",
	"large payloads/WhatIsDeletedIsGone", "large payloads/ACopyIsOnItsOwn", "large payloads/APageHasAThousand",
	"large payloads/ADeletionTakesThem", "large payloads/APastExecutionStaysWhileItsPayloadsAreReferredTo",
	"large payloads/ASweepTakesWhatNobodyRefersTo", "corruption/AnUndecodableTurn",
	"corruption/AnUndecodableLastTurn", "corruption/AnUndecodableStart", "corruption/ATurnOfALaterRelease",
	"corruption/ALastTurnOfALaterRelease", "corruption/AMissingPart", "corruption/AMissingFirstPart",
	"corruption/AMissingTurn", "corruption/AMissingStart", "corruption/TheEndIsInADamagedTurn",
	"corruption/OtherInstancesAreUnhindered", "corruption/ADamagedExecutionCanBeEnded",
	"corruption/ADamagedInstanceCanBeTerminated", "corruption/ADamagedChildThatIsTerminatedTellsItsParent",
	"errors/AThrottledCallIsRepeated", "errors/ARefusedCallNamesItsOperation",
	"errors/AnEndlesslyThrottledCallIsRetryable", "errors/ErrorsNameTheInstance", "errors/ACallEndsWithItsContext",
	"locking/FetchedRecordsAreLocked", "locking/AnInstanceHasOneHolder", "locking/OtherInstancesAreUnhindered",
	"locking/EveryFetchHasTokensOfItsOwn", "locking/AnUnknownTokenIsRefused",
	"locking/AnAckRemovesOnlyWhatWasFetched", "locking/ManyFetchersGetARecordOnce",
	"locking/ManyFetchersKeepAnInstancesOrder", "locking/AFetchIsOverWhenItsWaitIs",
	"locking/AFetchEndsWithItsContext", "locking/WrongArgumentsAreNamed", "locking/AFailedFetchNamesItsOperation",
	"locking/AFailedRenewalLosesNothing", "lock expiry/AnExpiredRecordIsFetchedAgain",
	"lock expiry/AnAbandonedRecordIsFetchedAtOnce", "lock expiry/AnAbandonedRecordIsFetchedAfterItsDelay",
	"lock expiry/ARenewalExtendsTheLock", "lock expiry/MoreRenewalsThanABatchHolds",
	"lock expiry/ARenewalAfterExpiryFails", "lock expiry/ALostRecordDoesNotHinderTheOthers",
	"lock expiry/ARenewalAfterAckFails", "lock expiry/ATurnIsNotCommittedAfterItsLock",
	"lock expiry/ATurnIsCommittedUnderARenewedLock", "lock expiry/AnOutcomeIsNotSentAfterItsLock",
	"lock expiry/AnAbandonAfterExpiryLeavesTheNextHolderAlone",
	"lock expiry/ARenewalAfterExpiryLeavesTheNextHolderAlone",
	"lock expiry/ADeletionAfterExpiryLeavesTheNextHolderAlone", "lock expiry/LocksEndAfterTwelveHours",
}
