//! The integration tests, one program for all of them.

mod formats;
mod layers;
