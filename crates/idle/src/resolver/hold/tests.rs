mod held_requests;
mod wait_queue;
