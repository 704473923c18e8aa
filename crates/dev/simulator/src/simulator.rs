//! The handle of a simulator.

use crate::clock::VirtualClock;
use crate::connection::{connection, verify};
use crate::control::{NewTemplate, Review};
use crate::control_error::ControlError;
use crate::settings::{Connection, Service, Settings, StartError};
use crate::world::{
    Action, Behaviour, CallbackCounts, ChatLine, Faults, NewUser, Number, ReadMark, SendFault, Sent, Shared,
    User,
};
use crate::{dispatch, server};
use actix_web::dev::ServerHandle;
use egress::{Connector, Policy};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The addresses that callbacks may use in addition to public ones: this machine and private networks.
const CALLBACKS: [&str; 6] =
    ["127.0.0.0/8", "::1", "localhost", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];

/// Timeout of [`Simulator::wait_until`], in real time.
const WAIT: Duration = Duration::from_secs(30);

/// A running simulator. Clones share it. It ends with [`Simulator::stop`] or when the last clone is dropped.
#[derive(Clone)]
pub struct Simulator(Arc<Running>);

struct Running {
    shared: Arc<Shared>,
    connector: Connector,
    address: SocketAddr,
    server: ServerHandle,
    dispatcher: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.dispatcher.abort();
        // The returned future only waits for the end.
        drop(self.server.stop(false));
    }
}

impl Simulator {
    /// Starts a simulator on the current runtime.
    ///
    /// # Errors
    /// If the address is not a loopback address or cannot be used.
    pub fn start(settings: Settings) -> Result<Self, StartError> {
        if !settings.listen.ip().is_loopback() {
            return Err(StartError::NotLoopback(settings.listen));
        }
        let listener = TcpListener::bind(settings.listen).map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let policy = Policy::allowing(CALLBACKS).unwrap_or_default();
        let connector = Connector::new(policy).map_err(StartError::Client)?;
        let workers = settings.workers.max(1);
        let shared = Arc::new(Shared::new(settings, format!("http://{address}")));
        let server = server::start(shared.clone(), connector.clone(), listener, workers)
            .map_err(StartError::Listen)?;
        let handle = server.handle();
        tokio::spawn(server);
        let dispatcher = tokio::spawn(dispatch::run(shared.clone(), connector.clone()));
        Ok(Self(Arc::new(Running { shared, connector, address, server: handle, dispatcher })))
    }

    /// Stops the simulator and aborts requests in progress.
    pub async fn stop(&self) {
        self.0.dispatcher.abort();
        self.0.server.stop(false).await;
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Returns the data to connect a channel to the number of the settings.
    #[must_use]
    pub fn connection(&self) -> Connection {
        connection(&self.0.shared)
    }

    /// Returns the simulator's clock. If the service uses it too, both jump together.
    #[must_use]
    pub fn clock(&self) -> Arc<VirtualClock> {
        self.0.shared.clock.clone()
    }

    /// Advances the clock.
    pub fn advance(&self, duration: Duration) {
        self.0.shared.clock.advance(chrono::Duration::from_std(duration).unwrap_or_default());
        self.0.shared.progress.send_replace(());
    }

    /// Adds a number, described by further settings.
    pub fn add_number(&self, settings: &Settings) {
        self.0.shared.change(|world| world.numbers.insert(settings.number_id.clone(), Number::of(settings)));
    }

    /// Sets the callback URL of a number.
    ///
    /// # Errors
    /// If the number does not exist.
    pub fn set_callback(&self, number_id: &str, url: Option<&str>) -> Result<(), ControlError> {
        self.0.shared.change(|world| {
            world.number_mut(number_id)?.callback_url = url.map(str::to_owned);
            Ok(())
        })
    }

    /// Sets the service that the page's business side uses. Without one the page has only the customers' side.
    pub fn set_service(&self, service: Option<Service>) {
        self.0.shared.change(|world| world.service = service);
    }

    /// Verifies a callback URL like the network, and sets it.
    ///
    /// # Errors
    /// If the number does not exist, or the URL does not respond with the challenge.
    pub async fn register_callback(
        &self,
        number_id: &str,
        url: &str,
        verify_token: &str,
    ) -> Result<(), ControlError> {
        verify(&self.0.connector, url, verify_token).await?;
        self.set_callback(number_id, Some(url))
    }

    /// Revokes the token of a number, or restores it.
    ///
    /// # Errors
    /// If the number does not exist.
    pub fn revoke_token(&self, number_id: &str, is_revoked: bool) -> Result<(), ControlError> {
        self.0.shared.change(|world| {
            world.number_mut(number_id)?.is_revoked = is_revoked;
            Ok(())
        })
    }

    /// Changes the rating of a number: `GREEN`, `YELLOW` or `RED`, and a tier such as `TIER_1K`.
    ///
    /// # Errors
    /// If the number does not exist.
    pub fn rate_number(&self, number_id: &str, quality: &str, tier: &str) -> Result<(), ControlError> {
        self.0.shared.change(|world| world.rate_number(number_id, quality, tier))
    }

    /// Adds a customer. Other numbers can receive messages too, but their owners do nothing.
    ///
    /// # Errors
    /// If the customer exists, or has neither number nor name.
    pub fn add_user(&self, new: NewUser) -> Result<User, ControlError> {
        self.0.shared.change(|world| world.add_user(new))
    }

    /// Returns the added customers, ordered by user id.
    #[must_use]
    pub fn users(&self) -> Vec<User> {
        let world = self.0.shared.lock();
        let mut users: Vec<User> = world.people.values().map(|person| person.user.clone()).collect();
        users.sort_by(|one, other| one.user_id.cmp(&other.user_id));
        users
    }

    /// Sets the automatic behaviour of a customer, given by user id or telephone number, as in the methods below.
    ///
    /// # Errors
    /// If the customer does not exist.
    pub fn set_behaviour(&self, user: &str, behaviour: Behaviour) -> Result<(), ControlError> {
        self.0.shared.change(|world| {
            let key = world.key_of(user)?;
            if let Some(person) = world.people.get_mut(&key) {
                person.user.behaviour = behaviour;
                person.step = 0;
            }
            Ok(())
        })
    }

    /// Performs an action of a customer towards the number of the settings. Returns the id of the resulting message.
    ///
    /// # Errors
    /// If the customer does not exist or cannot do this now.
    pub fn act(&self, user: &str, action: &Action) -> Result<Option<String>, ControlError> {
        self.0.shared.change(|world| {
            let number = world.settings.number_id.clone();
            let key = world.key_of(user)?;
            world.act(&key, &number, action)
        })
    }

    /// Performs an action of a customer towards another number.
    ///
    /// # Errors
    /// As [`Simulator::act`], and if the number does not exist.
    pub fn act_towards(
        &self,
        number_id: &str,
        user: &str,
        action: &Action,
    ) -> Result<Option<String>, ControlError> {
        self.0.shared.change(|world| {
            let key = world.key_of(user)?;
            world.act(&key, number_id, action)
        })
    }

    /// Sends a text of a customer.
    ///
    /// # Errors
    /// As [`Simulator::act`].
    pub fn write(&self, user: &str, body: &str) -> Result<String, ControlError> {
        let text = Action::Text { body: body.to_owned(), reply_to: None };
        self.act(user, &text).map(Option::unwrap_or_default)
    }

    /// Sends a message from the business's own device. Returns the id of the message.
    ///
    /// # Errors
    /// If the customer or the number does not exist.
    pub fn echo(&self, number_id: &str, user: &str, body: &str) -> Result<String, ControlError> {
        self.0.shared.change(|world| world.echo(number_id, user, body))
    }

    /// Returns the conversation of a customer.
    ///
    /// # Errors
    /// If the customer does not exist.
    pub fn chat(&self, user: &str) -> Result<Vec<ChatLine>, ControlError> {
        let world = self.0.shared.lock();
        Ok(world.chat(&world.key_of(user)?))
    }

    /// Sets the faults.
    pub fn set_faults(&self, faults: Faults) {
        self.0.shared.change(|world| world.faults = faults);
    }

    /// Returns the faults.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.0.shared.lock().faults.clone()
    }

    /// Sets the faults of the next sends, one each. After them the shares of [`Simulator::set_faults`] apply again.
    pub fn fault_next_sends(&self, faults: impl IntoIterator<Item = SendFault>) {
        self.0.shared.change(|world| world.next_sends.extend(faults));
    }

    /// Removes all files before their expiry.
    pub fn lose_files(&self) {
        self.0.shared.change(|world| world.files.lose());
    }

    /// Adds an approved template. Returns its id.
    ///
    /// # Errors
    /// If the template breaks a rule of the network.
    pub fn add_template(&self, template: &NewTemplate) -> Result<String, ControlError> {
        self.0.shared.change(|world| world.add_template(template))
    }

    /// Reviews a template.
    ///
    /// # Errors
    /// If the template does not exist.
    pub fn review(&self, name: &str, language: &str, review: &Review) -> Result<(), ControlError> {
        self.0.shared.change(|world| world.review(name, language, review))
    }

    /// Returns the accepted messages that are kept, oldest first.
    #[must_use]
    pub fn transcript(&self) -> Vec<Sent> {
        self.0.shared.lock().transcript.after(0, usize::MAX)
    }

    /// Removes the accepted messages, but keeps their count.
    pub fn clear_transcript(&self) {
        self.0.shared.change(|world| world.transcript.clear());
    }

    /// Returns the number of accepted messages, including those that are no longer kept.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.0.shared.lock().transcript.total
    }

    /// Returns the newest 1,000 messages that the business marked as read, oldest first.
    #[must_use]
    pub fn read_marks(&self) -> Vec<ReadMark> {
        self.0.shared.lock().marks.iter().cloned().collect()
    }

    /// Returns the statistics of callbacks.
    #[must_use]
    pub fn callbacks(&self) -> CallbackCounts {
        self.0.shared.lock().counts
    }

    /// Returns whether nothing is due, held back or being delivered. Later events do not count.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let world = self.0.shared.lock();
        let now = world.now();
        world.underway == 0
            && world.held.is_empty()
            && world.joining.is_empty()
            && world.queue.next().is_none_or(|due| due > now)
    }

    /// Waits until a condition is true, and checks it after each event. Returns `false` after 30 seconds of real
    /// time.
    pub async fn wait_until(&self, mut is_so: impl FnMut(&Self) -> bool) -> bool {
        let mut progress = self.0.shared.progress.subscribe();
        let wait = async {
            while !is_so(self) {
                progress.borrow_and_update();
                if is_so(self) || progress.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(WAIT, wait).await.is_ok()
    }
}
