"""What the exact figures of a job and of earlier releases determine, before anything is published."""
