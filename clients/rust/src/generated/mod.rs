//! Written by tools/generate from the repository's schema/.

mod entries;
mod enums;
mod methods;
mod notification;
mod params;
mod results;
mod setters;
mod types;

pub use entries::*;
pub use enums::*;
pub use methods::*;
pub use notification::*;
pub use params::*;
pub use results::*;
pub use types::*;
