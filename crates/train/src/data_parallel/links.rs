//! What replicas share with the steps of a program that communicate.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use brisk_replicate::CommThread;

use super::attendance::Attendance;
use super::overlap::Overlap;
use super::staging::Staging;

/// What the exchange of buckets needs.
#[derive(Debug, Clone)]
pub(super) struct Links {
    pub(super) communication: Arc<CommThread>,
    pub(super) overlap: Arc<Overlap>,
    pub(super) staging: Arc<Staging>,
    pub(super) attendance: Arc<Attendance>,
}

/// Whether a replica wants the run to end, which it sends with a loss.
#[derive(Debug, Default)]
pub(super) struct Stop {
    pub(super) is_wanted: AtomicBool,
    pub(super) is_agreed: AtomicBool,
}
