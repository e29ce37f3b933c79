<?php
// php pay_curl.php SOCKET ORDER AMOUNT: opens an invoice, shows the requisites, waits for the money. Ends with 0 when it
// is paid. Needs the curl extension.
[, $socket, $order, $amount] = $argv;

// One call: its status and its document. A 429 or 503 is retried after its Retry-After.
function call(string $method, string $path, ?array $body = null): array
{
    global $socket;
    for ($try = 1; ; $try++) {
        $after = 0;
        $curl = curl_init("http://tilld$path");
        curl_setopt_array($curl, [
            CURLOPT_UNIX_SOCKET_PATH => $socket,
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => 90,
            CURLOPT_HEADERFUNCTION => function ($curl, $line) use (&$after) {
                if (stripos($line, 'Retry-After:') === 0) {
                    $after = (int) substr($line, strlen('Retry-After:'));
                }
                return strlen($line);
            },
        ]);
        if ($body !== null) {
            curl_setopt($curl, CURLOPT_POSTFIELDS, json_encode($body, JSON_THROW_ON_ERROR));
            curl_setopt($curl, CURLOPT_HTTPHEADER, ['Content-Type: application/json', 'Prefer: wait=20']);
        }
        $text = curl_exec($curl);
        if ($text === false) {
            throw new RuntimeException("tilld does not answer at $socket: " . curl_error($curl));
        }
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($try === 5 || !in_array($status, [429, 503], true)) {
            return [$status, json_decode($text, true) ?? ['detail' => $text]];
        }
        sleep($after ?: 1);
    }
}

// A problem document says what is wrong and what to do.
function refused(int $status, array $problem): void
{
    fwrite(STDERR, "$status " . ($problem['error'] ?? '-') . ": $problem[detail]; " . ($problem['hint'] ?? '') . "\n");
    exit(1);
}

try {
    $wish = ['order_id' => $order, 'amount' => $amount, 'currency' => 'RUB', 'method' => 'SBP'];
    [$status, $invoice] = call('POST', '/v1/invoices', $wish);
} catch (RuntimeException $error) {
    fwrite(STDERR, $error->getMessage() . "\n");
    exit(1);
}
if ($status === 202) {
    echo "not known yet whether the service opened it: show nothing, a notification may settle it\n";
} elseif ($status < 300) {
    $requisites = json_encode($invoice['requisites'], JSON_UNESCAPED_UNICODE);
    echo "pay $invoice[amount_agreed] $invoice[currency] to $requisites until $invoice[expire_at]\n";
} elseif ($status === 409 && ($invoice['invoice']['outcome'] ?? '') === 'paid') {
    echo "order $order: paid\n"; // The customer came back after paying.
    exit(0);
} else {
    refused($status, $invoice);
}

// 202 is "not yet", and nothing answers while tilld restarts: retry, for a quarter of an hour.
$until = time() + 900;
while (time() < $until) {
    try {
        [$status, $invoice] = call('GET', '/v1/orders/' . rawurlencode($order) . '/wait?timeout=60');
    } catch (RuntimeException $error) {
        sleep(2);
        continue;
    }
    if ($status === 200) {
        echo "order $order: $invoice[outcome]\n";
        exit($invoice['outcome'] === 'paid' ? 0 : 1);
    }
    if ($status !== 202) {
        refused($status, $invoice);
    }
    sleep(1);
}
fwrite(STDERR, "order $order: still open\n");
exit(1);
