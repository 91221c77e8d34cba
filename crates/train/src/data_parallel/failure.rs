/// Why a step of the host failed.
pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;
