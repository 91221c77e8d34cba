//! What the examples that train on collisions share: options, rows, the network, what a run came to.

mod data;
mod network;
mod options;
mod outcome;
mod simulate;

pub use data::Data;
pub use network::Network;
pub use options::{DATA_HELP, Options, RESULTS_HELP, TRAINING_HELP, positive, whole};
pub use outcome::Outcome;
