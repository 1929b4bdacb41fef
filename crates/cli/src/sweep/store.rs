//! The store of results: an SQLite file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use super::point::Outcome;

/// Marks an SQLite file as a store: "LWsw".
const APPLICATION: i32 = 0x4c57_7377;
/// The version of the format. A change of the tables makes it another one.
const FORMAT: i32 = 1;
/// The time for which a store waits for another process that writes.
const BUSY: Duration = Duration::from_secs(30);

/// The keys are read through an index, so that opening does not read the results.
const TABLES: &str = "
    CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        point TEXT NOT NULL,
        result TEXT,
        error TEXT,
        seconds REAL NOT NULL
    );
    CREATE UNIQUE INDEX keys ON results (key);
    CREATE INDEX failures ON results (key) WHERE error IS NOT NULL;
";

/// A store of results.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// The keys of a store.
#[derive(Default)]
pub struct Keys {
    /// All keys.
    pub all: HashSet<String>,
    /// The keys of points that failed.
    pub failed: HashSet<String>,
}

impl Store {
    /// Opens the store, or makes an empty one.
    ///
    /// # Errors
    ///
    /// If the file is no store of this format, or cannot be written.
    pub fn open(path: &Path) -> Result<Self> {
        Self::with(path, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens the store if the file exists.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn existing(path: &Path) -> Result<Option<Self>> {
        match path.exists() {
            true => Self::with(path, OpenFlags::empty()).map(Some),
            false => Ok(None),
        }
    }

    fn with(path: &Path, create: OpenFlags) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
        let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
            connection.busy_timeout(BUSY)?;
            connection.pragma_update(None, "synchronous", "NORMAL")?;
            let application =
                connection.pragma_query_value(None, "application_id", |r| r.get(0))?;
            let format = connection.pragma_query_value(None, "user_version", |r| r.get(0))?;
            let tables = "SELECT count(*) FROM sqlite_schema";
            let tables: i64 = connection.query_row(tables, [], |row| row.get(0))?;
            Ok((connection, (application, format, tables)))
        });
        let name = path.display();
        let (connection, found) = match opened {
            Ok(opened) => opened,
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                bail!("{name} is no store of results; give another file with --store")
            }
            Err(error) => {
                let message =
                    format!("cannot open the store {name}; give another file with --store");
                return Err(error).context(message);
            }
        };
        let store = Self {
            connection,
            path: path.to_owned(),
        };
        match found {
            (APPLICATION, FORMAT, _) => Ok(store),
            (0, 0, 0) => store.create(),
            (APPLICATION, format, _) => bail!(
                "{name} has format {format}, and this lockworks reads format {FORMAT}; give \
                 another file with --store, or use the lockworks that wrote this one"
            ),
            _ => bail!("{name} is no store of results; give another file with --store"),
        }
    }

    fn create(self) -> Result<Self> {
        let sql = format!(
            "BEGIN EXCLUSIVE; {TABLES} PRAGMA application_id = {APPLICATION};
             PRAGMA user_version = {FORMAT}; COMMIT;"
        );
        self.tried(self.connection.execute_batch(&sql))?;
        Ok(self)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn tried<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.with_context(|| format!("the store {}", self.path.display()))
    }

    /// The keys of all results.
    pub fn keys(&self) -> Result<Keys> {
        let column = |sql: &str| -> rusqlite::Result<HashSet<String>> {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        let both = || {
            Ok(Keys {
                all: column("SELECT key FROM results")?,
                failed: column("SELECT key FROM results WHERE error IS NOT NULL")?,
            })
        };
        self.tried(both())
    }

    /// Adds outcomes. An outcome replaces a failure of the same point, and nothing else.
    pub fn add(&mut self, outcomes: &[Outcome]) -> Result<()> {
        let mut added = || -> Result<()> {
            let transaction = self.connection.transaction()?;
            {
                let mut insert = transaction.prepare(
                    "INSERT INTO results (key, point, result, error, seconds)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (key) DO UPDATE SET
                         point = excluded.point, result = excluded.result,
                         error = excluded.error, seconds = excluded.seconds
                     WHERE results.error IS NOT NULL",
                )?;
                for outcome in outcomes {
                    let result = outcome.result.as_ref().map(serde_json::to_string);
                    insert.execute(params![
                        outcome.key,
                        serde_json::to_string(&outcome.point)?,
                        result.transpose()?,
                        outcome.error,
                        outcome.seconds,
                    ])?;
                }
            }
            Ok(transaction.commit()?)
        };
        let added = added();
        added.with_context(|| format!("the store {}", self.path.display()))
    }

    /// The outcomes of the points of these keys, in their order. All must be in the store.
    pub fn outcomes<'a>(&self, keys: impl Iterator<Item = &'a String>) -> Result<Vec<Outcome>> {
        let mut select = self.tried(
            self.connection
                .prepare("SELECT point, result, error, seconds FROM results WHERE key = ?1"),
        )?;
        let outcomes = keys.map(|key| -> Result<Outcome> {
            let row = select.query_row([key], |row| {
                let texts: (String, Option<String>) = (row.get(0)?, row.get(1)?);
                Ok((texts, row.get(2)?, row.get(3)?))
            });
            let ((point, result), error, seconds) = self.tried(row)?;
            Ok(Outcome {
                key: key.clone(),
                point: serde_json::from_str(&point)?,
                result: result.as_deref().map(serde_json::from_str).transpose()?,
                error,
                seconds,
            })
        });
        let outcomes: Result<_> = outcomes.collect();
        outcomes.with_context(|| format!("cannot read {}", self.path.display()))
    }

    /// Adds the results of another store. A result replaces a failure of the same point, and nothing
    /// else. Returns how many results are new.
    pub fn merge(&mut self, from: &Store) -> Result<usize> {
        let attached = self
            .connection
            .execute("ATTACH DATABASE ?1 AS other", [from.path.to_string_lossy()]);
        self.tried(attached)?;
        let merged = self.connection.execute(
            "INSERT INTO results (key, point, result, error, seconds)
             SELECT key, point, result, error, seconds FROM other.results WHERE true
             ON CONFLICT (key) DO UPDATE SET
                 point = excluded.point, result = excluded.result, error = excluded.error,
                 seconds = excluded.seconds
             WHERE results.error IS NOT NULL AND excluded.error IS NULL",
            [],
        );
        let merged = self.tried(merged)?;
        self.tried(self.connection.execute_batch("DETACH DATABASE other"))?;
        Ok(merged)
    }
}

/// The most outcomes that wait to be written.
const BATCH: usize = 500;
/// The longest time between writes.
const PERIOD: Duration = Duration::from_secs(1);

/// Writes outcomes to a store, many in a transaction.
pub struct Writer {
    store: Store,
    waiting: Vec<Outcome>,
    written: Instant,
}

impl Writer {
    /// A writer to this store.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            waiting: Vec::new(),
            written: Instant::now(),
        }
    }

    /// Adds an outcome, and writes all that wait if it is time.
    pub fn add(&mut self, outcome: Outcome) -> Result<()> {
        self.waiting.push(outcome);
        if self.waiting.len() >= BATCH || self.written.elapsed() >= PERIOD {
            self.write()?;
        }
        Ok(())
    }

    /// Writes all outcomes that wait.
    pub fn write(&mut self) -> Result<()> {
        self.store.add(&self.waiting)?;
        self.waiting.clear();
        self.written = Instant::now();
        Ok(())
    }

    /// The store, with everything written.
    pub fn store(&mut self) -> Result<&Store> {
        self.write()?;
        Ok(&self.store)
    }
}
