use super::copies::Copies;
use super::joint_copies::JointCopies;

/// How the checkpoints of a run are copied.
#[derive(Debug)]
pub(super) enum RunCopies {
    /// By a thread of the replica that writes them.
    Beside(Copies),
    /// By all replicas, each of which writes a file.
    Joint(JointCopies),
}
