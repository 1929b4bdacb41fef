//! Wait times by call stack, in the format of pprof (`profile.proto`), with the two figures that the profiles of Go's
//! mutexes have: contentions and delay.

use std::collections::HashMap;
use std::io::Write;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::stacks::Stack;

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The numbers of values, in the order in which they were first seen.
struct Numbers<T> {
    numbers: HashMap<T, usize>,
    values: Vec<T>,
}

impl<T: Clone + Eq + std::hash::Hash> Numbers<T> {
    fn new() -> Self {
        Self {
            numbers: HashMap::new(),
            values: Vec::new(),
        }
    }

    fn of(&mut self, value: T) -> usize {
        *self.numbers.entry(value.clone()).or_insert_with(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }
}

/// The profile, compressed as pprof expects it.
pub fn encode(stacks: &[Stack], seconds: f64) -> Result<Vec<u8>> {
    // The first string must be empty.
    let mut strings = Numbers::new();
    strings.of(String::new());
    let mut word = |word: &str| strings.of(word.to_owned()) as i64;
    let sample_type = [("contentions", "count"), ("delay", "nanoseconds")]
        .map(|(kind, unit)| ValueType {
            kind: word(kind),
            unit: word(unit),
        })
        .to_vec();
    let mut functions = Numbers::new();
    let mut locations = Numbers::new();
    let sample = stacks.iter().map(|stack| {
        let ids = stack.frames.iter().map(|frame| {
            let line = frame.line.as_deref().unwrap_or_default();
            let (file, line) = line.rsplit_once(':').unwrap_or((line, "0"));
            let name = word(frame.function.as_deref().unwrap_or("?"));
            let function = functions.of((name, word(file))) as u64 + 1;
            locations.of((function, line.parse().unwrap_or(0))) as u64 + 1
        });
        Sample {
            location_id: ids.collect(),
            value: vec![stack.contended as i64, stack.waited_ns as i64],
        }
    });
    let sample = sample.collect();
    let location = locations.values.iter().zip(1..);
    let location = location.map(|(&(function_id, line), id)| Location {
        id,
        line: vec![Line { function_id, line }],
    });
    let function = functions.values.iter().zip(1..);
    let function = function.map(|(&(name, filename), id)| Function {
        id,
        name,
        system_name: name,
        filename,
    });
    let profile = Profile {
        sample_type,
        sample,
        location: location.collect(),
        function: function.collect(),
        duration_nanos: (seconds * 1e9) as i64,
        string_table: strings.values,
    };
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(&profile.encode_to_vec())?;
    Ok(file.finish()?)
}
