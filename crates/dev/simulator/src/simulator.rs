//! The handle.

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

/// Where callbacks may go beside public addresses: this machine and private networks.
const CALLBACKS: [&str; 6] =
    ["127.0.0.0/8", "::1", "localhost", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"];

/// How long [`Simulator::wait_until`] waits, in real time.
const WAIT: Duration = Duration::from_secs(30);

/// A running simulator. A clone is the same one; it ends with [`Simulator::stop`] or with the last clone.
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
        // The future only tells the server's end.
        drop(self.server.stop(false));
    }
}

impl Simulator {
    /// Starts a simulator on the current runtime.
    ///
    /// # Errors
    /// When the address is not a loopback one or cannot be used.
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

    /// Ends it. Requests under way are cut off.
    pub async fn stop(&self) {
        self.0.dispatcher.abort();
        self.0.server.stop(false).await;
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// What a channel needs to be connected to the number of the settings.
    #[must_use]
    pub fn connection(&self) -> Connection {
        connection(&self.0.shared)
    }

    /// The clock by which the simulator goes. Give it to the service, and both jump together.
    #[must_use]
    pub fn clock(&self) -> Arc<VirtualClock> {
        self.0.shared.clock.clone()
    }

    /// Moves the clock on.
    pub fn advance(&self, duration: Duration) {
        self.0.shared.clock.advance(chrono::Duration::from_std(duration).unwrap_or_default());
        self.0.shared.progress.send_replace(());
    }

    /// Adds a number of the business that the settings describe otherwise.
    pub fn add_number(&self, settings: &Settings) {
        self.0.shared.change(|world| world.numbers.insert(settings.number_id.clone(), Number::of(settings)));
    }

    /// Where callbacks of a number go from now on.
    ///
    /// # Errors
    /// When there is no such number.
    pub fn set_callback(&self, number_id: &str, url: Option<&str>) -> Result<(), ControlError> {
        self.0.shared.change(|world| {
            world.number_mut(number_id)?.callback_url = url.map(str::to_owned);
            Ok(())
        })
    }

    /// The service on whose behalf the page's business side reads and writes from now on. Without one there is only the
    /// customers' side.
    pub fn set_service(&self, service: Option<Service>) {
        self.0.shared.change(|world| world.service = service);
    }

    /// Verifies a callback URL as the network does, and uses it from then on.
    ///
    /// # Errors
    /// When there is no such number, or the URL does not answer with the challenge.
    pub async fn register_callback(
        &self,
        number_id: &str,
        url: &str,
        verify_token: &str,
    ) -> Result<(), ControlError> {
        verify(&self.0.connector, url, verify_token).await?;
        self.set_callback(number_id, Some(url))
    }

    /// Accepts the number's token no longer, or again.
    ///
    /// # Errors
    /// When there is no such number.
    pub fn revoke_token(&self, number_id: &str, is_revoked: bool) -> Result<(), ControlError> {
        self.0.shared.change(|world| {
            world.number_mut(number_id)?.is_revoked = is_revoked;
            Ok(())
        })
    }

    /// Rates a number anew: `GREEN`, `YELLOW` or `RED`, and a tier such as `TIER_1K`.
    ///
    /// # Errors
    /// When there is no such number.
    pub fn rate_number(&self, number_id: &str, quality: &str, tier: &str) -> Result<(), ControlError> {
        self.0.shared.change(|world| world.rate_number(number_id, quality, tier))
    }

    /// Makes a customer. Others can be written to, too: they exist, but do nothing.
    ///
    /// # Errors
    /// When there is one already, or nothing names it.
    pub fn add_user(&self, new: NewUser) -> Result<User, ControlError> {
        self.0.shared.change(|world| world.add_user(new))
    }

    /// All customers that were made, in the order of their user ids.
    #[must_use]
    pub fn users(&self) -> Vec<User> {
        let world = self.0.shared.lock();
        let mut users: Vec<User> = world.people.values().map(|person| person.user.clone()).collect();
        users.sort_by(|one, other| one.user_id.cmp(&other.user_id));
        users
    }

    /// What a customer does by itself from now on. The customer is named by user id or phone, here and below.
    ///
    /// # Errors
    /// When there is no such customer.
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

    /// Lets a customer do something, towards the number of the settings. Returns the id of the message that results.
    ///
    /// # Errors
    /// When there is no such customer, or it cannot do that now.
    pub fn act(&self, user: &str, action: &Action) -> Result<Option<String>, ControlError> {
        self.0.shared.change(|world| {
            let number = world.settings.number_id.clone();
            let key = world.key_of(user)?;
            world.act(&key, &number, action)
        })
    }

    /// The same towards another number.
    ///
    /// # Errors
    /// As [`Simulator::act`], and when there is no such number.
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

    /// A customer writes.
    ///
    /// # Errors
    /// As [`Simulator::act`].
    pub fn write(&self, user: &str, body: &str) -> Result<String, ControlError> {
        let text = Action::Text { body: body.to_owned(), reply_to: None };
        self.act(user, &text).map(Option::unwrap_or_default)
    }

    /// The business writes to a customer on its own device. Returns the message's id.
    ///
    /// # Errors
    /// When there is no such customer or number.
    pub fn echo(&self, number_id: &str, user: &str, body: &str) -> Result<String, ControlError> {
        self.0.shared.change(|world| world.echo(number_id, user, body))
    }

    /// The conversation of a customer.
    ///
    /// # Errors
    /// When there is no such customer.
    pub fn chat(&self, user: &str) -> Result<Vec<ChatLine>, ControlError> {
        let world = self.0.shared.lock();
        Ok(world.chat(&world.key_of(user)?))
    }

    /// What goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.0.shared.change(|world| world.faults = faults);
    }

    /// What goes wrong now.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.0.shared.lock().faults.clone()
    }

    /// What happens to the next sends, one after the other, before the shares of [`Simulator::set_faults`] count again.
    pub fn fault_next_sends(&self, faults: impl IntoIterator<Item = SendFault>) {
        self.0.shared.change(|world| world.next_sends.extend(faults));
    }

    /// Loses all files before their time.
    pub fn lose_files(&self) {
        self.0.shared.change(|world| world.files.lose());
    }

    /// Adds an approved template. Returns its id.
    ///
    /// # Errors
    /// When the network would not take it.
    pub fn add_template(&self, template: &NewTemplate) -> Result<String, ControlError> {
        self.0.shared.change(|world| world.add_template(template))
    }

    /// Reviews a template.
    ///
    /// # Errors
    /// When there is no such template.
    pub fn review(&self, name: &str, language: &str, review: &Review) -> Result<(), ControlError> {
        self.0.shared.change(|world| world.review(name, language, review))
    }

    /// The accepted messages that are kept, oldest first.
    #[must_use]
    pub fn transcript(&self) -> Vec<Sent> {
        self.0.shared.lock().transcript.after(0, usize::MAX)
    }

    /// Forgets the accepted messages, but not how many they were.
    pub fn clear_transcript(&self) {
        self.0.shared.change(|world| world.transcript.clear());
    }

    /// How many messages were accepted, those that are no longer kept included.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.0.shared.lock().transcript.total
    }

    /// The newest 1,000 messages that the business marked as read, oldest first.
    #[must_use]
    pub fn read_marks(&self) -> Vec<ReadMark> {
        self.0.shared.lock().marks.iter().cloned().collect()
    }

    /// How callbacks went.
    #[must_use]
    pub fn callbacks(&self) -> CallbackCounts {
        self.0.shared.lock().counts
    }

    /// Whether nothing is due, held back or being called back. What is planned for later does not count.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let world = self.0.shared.lock();
        let now = world.now();
        world.underway == 0
            && world.held.is_empty()
            && world.joining.is_empty()
            && world.queue.next().is_none_or(|due| due > now)
    }

    /// Waits until something is so, and looks each time that something happens. `false` if it was not so within 30 seconds
    /// of real time.
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
