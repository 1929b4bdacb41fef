//! The checker from outside. One program has all of these tests, so that two of them run at any time until
//! the last.

mod fork;
mod idle;
mod litmus;
mod lockref;
mod locks;
mod models;
mod mutants;
mod random;
mod resilient;
