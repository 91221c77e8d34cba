//! Shared code of the examples that train on collisions: options, rows, the network and the results.

mod data;
mod network;
mod options;
mod outcome;
mod place;
mod simulate;
pub mod stopped;

pub use data::Data;
pub use network::Network;
pub use options::Options;
pub use outcome::Outcome;
pub use place::{Place, PlaceOptions, Resume, train};
